//! `beebox show`.

use std::path::{Path, PathBuf};

use report::object::{LinkedFor, Shown, object_json, object_text};

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::kernel_input::{FOR_LINKING, KernelArgs, assumed};
use crate::object_input::ObjectFile;
use crate::program_output::{json, print, write_output};

/// Show what a BPF object contains and which kernels it needs
///
/// Programs, maps, externs, CO-RE relocations, and the oldest release of Linux that has
/// everything that the object uses. Nothing is loaded, and no kernel is needed. With
/// --kernel or --link the programs are also linked, and unresolved references are listed.
#[derive(clap::Args)]
#[command(after_help = "\
The columns: insns with the functions that a program calls (subprogs); stack in bytes
over the deepest chain of calls; core, how many instructions depend on the kernel's
types; linux, the oldest release that has everything, and the newest thing that needs
it. Code that runs only if the kernel has a feature counts too.

Exit codes: 0 shown, 1 shown, and a program can't be linked, 2 could not answer.

Examples:
  beebox show prog.bpf.o
  beebox show prog.bpf.o --all                      leave nothing out
  beebox show prog.bpf.o --kernel vmlinux-5.15.btf  does it fit that kernel?
  beebox show prog.bpf.o --format json | jq '.needs[] | select(.linux == \"6.9\")'")]
pub(crate) struct Args {
    /// The object; `-` is standard input
    #[arg(value_name = "FILE.o")]
    file: PathBuf,

    /// Link the programs for Linux 6.18, or the kernel that --kernel names
    #[arg(long)]
    link: bool,

    #[command(flatten)]
    kernel: KernelArgs,

    /// Leave nothing out
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let file = ObjectFile::read(&args.file)?;
    let mut object = file.open()?;
    let overview = object.overview();
    let kernel = match args.link || args.kernel.is_given() {
        true => Some(args.kernel.read()?),
        false => None,
    };
    let loaded: Vec<_> = object.autoloaded().collect();
    let trial = kernel
        .as_ref()
        .map(|kernel| object.try_link(&loaded, kernel));
    let answer = match &trial {
        Some(trial)
            if trial
                .programs
                .iter()
                .any(|program| program.refusal().is_some() && !program.is_undecided()) =>
        {
            Answer::No
        }
        _ => Answer::Yes,
    };
    let linked_for = kernel.as_ref().map(|kernel| LinkedFor {
        kernel,
        assumed: assumed(kernel, FOR_LINKING),
    });
    let shown = Shown {
        file: base(&args.file),
        size: file.len(),
        object: &object,
        overview: &overview,
        trial: linked_for.as_ref().zip(trial.as_ref()),
        all: args.all,
    };
    match args.format.format() {
        AnswerFormat::Json => write_output(&json(&object_json(&shown)), None)?,
        AnswerFormat::Text => print(&object_text(&shown))?,
    }
    Ok(answer)
}

/// The last part of a path.
fn base(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("-")
}
