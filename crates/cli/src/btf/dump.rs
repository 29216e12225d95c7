//! `beebox btf dump`.

use beebox::internal::btf::{COptions, TypeId, dump_c, dump_raw, dump_raw_type};

use report::btf::{chosen_types_json, types_json};

use super::input::{FileArg, find};
use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::input::name;
use crate::output_path::OutputArg;
use crate::program_output::text_as;
use crate::stdout::{json, write_answer, write_output};
use crate::type_file::read_types;

/// Print types: as a list, as C or as JSON
///
/// The list and C are those of bpftool, byte for byte; JSON has bpftool's keys.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox btf dump /sys/kernel/btf/vmlinux --format c -o vmlinux.h
  beebox btf dump prog.bpf.o                      every type with its number
  beebox btf dump prog.bpf.o -j | jq '.types[] | select(.kind == \"STRUCT\") | .name'
  beebox btf dump prog.bpf.o --format c --type 'struct event'")]
pub(crate) struct Args {
    #[command(flatten)]
    file: FileArg,

    /// Format of the types
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_as(Form::Raw, |_| true))]
    format: Form,

    /// The same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    /// Only this type (a name or a number), and in C the types that it needs
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,

    /// Print C in the order of the types, not by name
    #[arg(long)]
    unsorted: bool,

    #[command(flatten)]
    output: OutputArg,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// One type after the other, with its number
    Raw,
    /// A header file
    C,
    /// An object with a list of types, with bpftool's keys
    Json,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path([args.file.file.as_path()])?;
    let types = read_types(&args.file.file)?;
    let mut roots: Vec<TypeId> = Vec::new();
    for word in &args.types {
        let found = find(&types.btf, word);
        roots.extend(found.map_err(|failure| failure.within(name(&args.file.file)))?);
    }
    let format = if args.json { Form::Json } else { args.format };
    let text = match format {
        Form::Json if roots.is_empty() => json(&types_json(&types.btf)),
        Form::Json => json(&chosen_types_json(&types.btf, &roots)),
        Form::C => {
            let options = COptions {
                sorted: !args.unsorted,
                roots,
            };
            dump_c(&types.btf, &options)
                .map_err(|error| Failure::new(error).within(name(&args.file.file)))?
        }
        Form::Raw if roots.is_empty() => dump_raw(&types.btf),
        Form::Raw => {
            let mut text = Vec::new();
            for id in roots {
                text.extend(dump_raw_type(types.btf.at(id)));
                text.push(b'\n');
            }
            text
        }
    };
    match format {
        Form::Json => write_answer(AnswerFormat::Json, &text, output)?,
        Form::Raw | Form::C => write_output(&text, output)?,
    }
    Ok(Answer::Yes)
}
