//! `beebox btf diff`.

use std::fmt::Write as _;
use std::path::PathBuf;

use beebox::internal::btf::diff::{Change, Changed, diff};
use beebox::internal::btf::{Kind, TypeFile};
use report::btf::{ChangedRecord, changed_text};
use serde::Serialize;

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs, count};
use crate::input::check_streams;
use crate::output_path::OutputArg;
use crate::stdout::{json, write_folded};
use crate::type_file::read_types;

/// Show what changed between two sets of types
///
/// Members that moved, changed their type or size, came or went; sizes; values of
/// enumerations; what typedefs and functions are. Types that were only added break
/// nothing and are counted, not listed (see --all).
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 nothing changed that programs could rely on, 1 something did, 2 could not answer.

Examples:
  beebox btf diff vmlinux-6.12.btf /sys/kernel/btf/vmlinux
  beebox btf diff old.btf new.btf --type task_struct --type sk_buff")]
pub(crate) struct Args {
    /// The old types; `-` is standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The new types; `-` is standard input
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Only types of this name
    #[arg(long = "type", value_name = "TYPE")]
    names: Vec<String>,

    /// List types that were only added or extended, too
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let files = [args.old.as_path(), args.new.as_path()];
    check_streams(files)?;
    let output = args.output.path(files)?;
    let (old, new) = (read_types(&args.old)?, read_types(&args.new)?);
    for name in &args.names {
        check_known(name, &old, &new, &args)?;
    }
    let mut changed = diff(&old.btf, &new.btf);
    if !args.names.is_empty() {
        changed.retain(|changed| args.names.contains(&changed.name));
    }
    let (moving, added): (Vec<Changed>, Vec<Changed>) = changed
        .into_iter()
        .partition(|changed| changed.changes.iter().any(Change::moves_things));
    let answer = match moving.is_empty() {
        true => Answer::Yes,
        false => Answer::No,
    };
    let listed = moving.iter().chain(added.iter().filter(|_| args.all));
    let text = match args.format.format() {
        AnswerFormat::Json => json(&Report {
            changed: listed.map(ChangedRecord::new).collect(),
            added: added.len(),
        }),
        AnswerFormat::Text => {
            let mut text: String = listed.map(changed_text).collect();
            let _ = writeln!(
                text,
                "{} changed, {} added or extended",
                count(moving.len(), "type"),
                match added.len() {
                    1 => "1 type was".to_owned(),
                    many => format!("{many} types were"),
                }
            );
            text.into_bytes()
        }
    };
    write_folded(args.format.format(), &text, output)?;
    Ok(answer)
}

/// Refuses the name of a type that is in neither set.
fn check_known(name: &str, old: &TypeFile, new: &TypeFile, args: &Args) -> Result<(), Failure> {
    let compared = [
        Kind::Struct,
        Kind::Union,
        Kind::Enum,
        Kind::Enum64,
        Kind::Typedef,
        Kind::Func,
    ];
    let types = || old.btf.types().chain(new.btf.types());
    let mut named = types().filter(|ty| compared.contains(&ty.kind()));
    if named.any(|ty| ty.name().as_bytes() == name.as_bytes()) {
        return Ok(());
    }
    let failure = Failure::new(format_args!(
        "neither {} nor {} has a structure, union, enumeration, typedef or function {name:?}",
        crate::input::name(&args.old),
        crate::input::name(&args.new)
    ));
    let names = types().filter(|ty| compared.contains(&ty.kind()));
    let names = names.map(|ty| ty.name().to_string());
    let changes = names.map(|other| (strsim::levenshtein(name, &other), other));
    let nearest = changes.min();
    let nearest = nearest.filter(|(changes, _)| 3 * changes <= name.chars().count());
    Err(match nearest {
        Some((_, nearest)) => failure.hint(format_args!("--type {nearest}")),
        None => failure,
    })
}

#[derive(Serialize)]
struct Report {
    changed: Vec<ChangedRecord>,
    added: usize,
}
