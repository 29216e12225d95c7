//! `beebox show`: contents of objects and the oldest kernel for each part.

use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::object::{ProgramTrial, oldest};
use beebox::program::Release;
use report::object::{
    LinkedFor, Shown, needs_newer_text, object_json, object_text, unlinked_json, unlinked_text,
};

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::kernel_input::{FOR_LINKING, KernelArgs, assumed, note_assumed, note_built_in};
use crate::object_input::{ObjectFile, is_lacking};
use crate::program_output::{json, print, write_output};

/// Show what BPF objects contain and which kernels they need
///
/// Programs, maps, externs, CO-RE relocations, and the oldest release of Linux that has
/// everything that the object uses. Nothing is loaded, and no kernel is needed. With
/// --kernel or --link the programs are also linked, and unresolved references are listed.
#[derive(clap::Args)]
#[command(after_help = "\
The columns: insns with the functions that a program calls (subprogs); stack in bytes
over the deepest chain of calls; core, how many instructions depend on the kernel's
types; linux, the oldest release that has everything, and the newest thing that needs
it. Code that runs only if the kernel has a feature counts too. Big-endian objects and
those with legacy maps (SEC(\"maps\")) are shown and not linked.

Exit codes: 0 shown, 1 shown, and a program can't be linked or needs a newer release
than --needs-at-most names, 2 could not answer.

Examples:
  beebox show prog.bpf.o
  beebox show prog.bpf.o --all                      leave nothing out
  beebox show *.bpf.o --needs-at-most 5.4           does any need a newer Linux?
  beebox show prog.bpf.o --kernel vmlinux-5.15.btf  does it fit that kernel?
  beebox show prog.bpf.o --format json | jq '.needs[] | select(.linux == \"6.9\")'")]
pub(crate) struct Args {
    /// The objects; `-` is standard input
    #[arg(value_name = "FILE.o", required = true)]
    files: Vec<PathBuf>,

    /// List only what is newer than this release of Linux; exit code 1 if anything is
    #[arg(long, value_name = "RELEASE", conflicts_with_all = ["link", "all"])]
    needs_at_most: Option<Release>,

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
    let kernel = match args.link || args.kernel.is_given() {
        true => Some(args.kernel.read()?),
        false => None,
    };
    let is_text = args.format.format() == AnswerFormat::Text;
    let mut answer = Answer::Yes;
    for (number, file) in args.files.iter().enumerate() {
        if number > 0 && is_text && args.needs_at_most.is_none() {
            print("\n")?;
        }
        if let Answer::No = show(&args, file, kernel.as_ref())? {
            answer = Answer::No;
        }
    }
    Ok(answer)
}

/// Shows one object.
fn show(args: &Args, path: &Path, kernel: Option<&Kernel>) -> Result<Answer, Failure> {
    let file = ObjectFile::read(path)?;
    if let Some(object) = file.unlinked()
        && args.needs_at_most.is_none()
    {
        match args.format.format() {
            AnswerFormat::Json => write_output(&json(&unlinked_json(base(path), &object)), None)?,
            AnswerFormat::Text => print(&unlinked_text(base(path), &object))?,
        }
        return Ok(match kernel {
            Some(_) => Answer::No,
            None => Answer::Yes,
        });
    }
    let mut object = file.open_beside(&args.files)?;
    let overview = object.overview();
    let loaded: Vec<_> = object.autoloaded().collect();
    let trial = kernel.map(|kernel| object.try_link(&loaded, kernel));
    let is_refused =
        |program: &ProgramTrial| program.refusal().is_some() && !program.is_undecided();
    let cannot_link = (trial.as_ref()).is_some_and(|trial| trial.programs.iter().any(is_refused));
    let linked_for = kernel.map(|kernel| LinkedFor {
        kernel,
        assumed: assumed(kernel, FOR_LINKING),
    });
    let shown = Shown {
        file: base(path),
        size: file.len(),
        object: &object,
        overview: &overview,
        trial: linked_for.as_ref().zip(trial.as_ref()),
        all: args.all,
    };
    match (args.format.format(), args.needs_at_most) {
        (AnswerFormat::Json, _) => write_output(&json(&object_json(&shown)), None)?,
        (AnswerFormat::Text, Some(release)) => {
            print(&needs_newer_text(&shown, release))?;
            kernel.inspect(|kernel| note_assumed(kernel, FOR_LINKING, "linked"));
        }
        (AnswerFormat::Text, None) => print(&object_text(&shown))?,
    }
    if let (Some(kernel), Some(trial)) = (kernel, &trial)
        && is_lacking(trial)
    {
        note_built_in(kernel);
    }
    let oldest = oldest(&overview.needs());
    let too_new = (args.needs_at_most).is_some_and(|release| oldest > Some(release));
    match cannot_link || too_new {
        true => Ok(Answer::No),
        false => Ok(Answer::Yes),
    }
}

/// The last part of a path.
fn base(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("-")
}
