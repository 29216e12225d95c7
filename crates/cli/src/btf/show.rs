//! `beebox btf show`.

use report::btf::{BtfSummary, Layout};
use serde::Serialize;

use super::input::{FileArg, find};
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::input::name;
use crate::output_path::OutputArg;
use crate::stdout::{json, write_folded};
use crate::type_file::read_types;

/// Show how many types there are, or the layout of one
///
/// Without TYPE: the number of types of each kind, their size, and whether Linux accepts
/// them as they are. With TYPE: its members with their offsets and sizes in
/// bytes, and the holes between them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox btf show prog.bpf.o
  beebox btf show /sys/kernel/btf/vmlinux task_struct
  beebox btf show prog.bpf.o 'struct event' --format json | jq '.types[0].size'")]
pub(crate) struct Args {
    #[command(flatten)]
    file: FileArg,

    /// A name (with or without `struct` and the like) or a number
    #[arg(value_name = "TYPE")]
    ty: Option<String>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path([args.file.file.as_path()])?;
    let types = read_types(&args.file.file)?;
    let text = match (&args.ty, args.format.format()) {
        (None, format) => {
            let summary = BtfSummary::new(&types.btf, types.ext.as_ref());
            match format {
                AnswerFormat::Text => summary.text().into_bytes(),
                AnswerFormat::Json => json(&summary),
            }
        }
        (Some(word), format) => {
            let found = find(&types.btf, word);
            let found = found.map_err(|failure| failure.within(name(&args.file.file)))?;
            let layouts: Vec<Layout> = found
                .into_iter()
                .map(|id| Layout::new(types.btf.at(id)))
                .collect();
            match format {
                AnswerFormat::Json => json(&Layouts { types: layouts }),
                AnswerFormat::Text => layouts
                    .iter()
                    .map(Layout::text)
                    .collect::<Vec<_>>()
                    .join("\n")
                    .into_bytes(),
            }
        }
    };
    write_folded(args.format.format(), &text, output)?;
    Ok(Answer::Yes)
}

#[derive(Serialize)]
struct Layouts {
    types: Vec<Layout>,
}
