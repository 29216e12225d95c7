//! `beebox show`: contents of objects and the oldest kernel for each part.

use std::path::PathBuf;

use beebox::Kernel;
use beebox::internal::loading::{LoadingError, ObjectLoading};
use beebox::internal::object::{ProgramLinkReport, oldest};
use beebox::internal::program::Release;
use report::object::{
    Hints, LinkedFor, Shown, needs_newer_text, object_json, object_text, unlinked_json,
    unlinked_text,
};

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::input;
use crate::kernel_input::{FOR_LINKING, KernelArgs, assumed, note_assumed, note_built_in};
use crate::loading::{LoadingArgs, change, failure, note_guess};
use crate::object_input::{ObjectFile, kernel_lacks_feature, note_definer, short_names};
use crate::output_path::OutputArg;
use crate::stdout::{json, print_answer, terminal_width, write_answer};

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
it. Helpers and kfuncs that run only behind a check of what the kernel has (CO-RE,
LINUX_KERNEL_VERSION) are marked and do not count; opcodes, atomic operations and function
references behind one do, since Linux checks them in dead code too. Big-endian objects and
those with legacy maps (SEC(\"maps\")) are shown and not linked. JSON is one line for each
object (JSON Lines).

Exit codes: 0 shown, 1 shown, and a program can't be linked with all references resolved, or
needs a newer release than --needs-at-most names, 2 could not answer.

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

    /// Leave nothing out
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    loading: LoadingArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let kernel = match args.link || args.kernel.is_given() {
        true => Some(args.kernel.read()?),
        false => None,
    };
    let inputs = args.files.iter().map(PathBuf::as_path);
    let output = args.output.path(inputs.chain(args.kernel.files()))?;
    let output = output.filter(|output| !output.is_standard());
    let request = Request {
        args: &args,
        loading: &args.loading.read()?,
        kernel: kernel.as_ref(),
        width: terminal_width().filter(|_| !args.all && output.is_none()),
    };
    // Names that none of the files has so far.
    let mut lacking = None;
    let mut written = Vec::new();
    let is_text = args.format.format() == AnswerFormat::Text;
    let mut answer = Answer::Yes;
    let mut failed = None;
    let mut is_first = true;
    for (path, name) in args.files.iter().zip(short_names(&args.files)) {
        // A file that cannot be shown keeps no other from it.
        let mut text = Vec::new();
        let file = ObjectFile::read(path);
        match file.and_then(|file| show(&request, &file, &name, &mut lacking, &mut text)) {
            Ok(Answer::Yes) => {}
            Ok(Answer::No) => answer = Answer::No,
            Err(failure) => report(failed.replace(failure)),
        }
        if !text.is_empty() && !is_first && is_text && args.needs_at_most.is_none() {
            text.insert(0, b'\n');
        }
        is_first &= text.is_empty();
        match output {
            None => print_answer(args.format.format(), &text)?,
            Some(_) => written.extend(text),
        }
    }
    if output.is_some() {
        write_answer(args.format.format(), &written, output)?;
    }
    for error in lacking.unwrap_or_default() {
        report(failed.replace(failure(error)));
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(answer),
    }
}

/// What is shown of every object.
struct Request<'a> {
    args: &'a Args,
    loading: &'a ObjectLoading,
    kernel: Option<&'a Kernel>,
    width: Option<usize>,
}

/// Reports a failure that another one follows.
fn report(failure: Option<Failure>) {
    if let Some(failure) = failure {
        let _ = failure.report();
    }
}

/// Writes what is shown of one object. `lacking` becomes what neither it nor those before it have.
fn show(
    request: &Request<'_>,
    file: &ObjectFile,
    name: &str,
    lacking: &mut Option<Vec<LoadingError>>,
    text: &mut Vec<u8>,
) -> Result<Answer, Failure> {
    let Request {
        args,
        loading,
        kernel,
        width,
    } = *request;
    if let Some(object) = file.unlinked(loading)
        && args.needs_at_most.is_none()
    {
        note_definer(&object, file.path(), &args.files);
        match args.format.format() {
            AnswerFormat::Json => text.extend(json(&unlinked_json(name, &object))),
            AnswerFormat::Text => text.extend(unlinked_text(name, &object).into_bytes()),
        }
        return Ok(match kernel {
            Some(_) => Answer::No,
            None => Answer::Yes,
        });
    }
    let mut object = file.open_by(loading, &args.files)?;
    note_guess(&object, &input::name(file.path()));
    if let [_] = args.files[..] {
        change(&mut object, loading)?;
    } else {
        let mut missing = loading.missing_from(&object);
        if let Some(before) = lacking {
            missing.retain(|error| before.iter().any(|other| error.is_about_same_name(other)));
        }
        *lacking = Some(missing);
        loading.apply(&mut object).map_err(failure)?;
    }
    let overview = object.overview();
    let loaded: Vec<_> = object.autoloaded().collect();
    let link_report = kernel.map(|kernel| object.try_link(&loaded, kernel));
    let is_unresolved = |program: &ProgramLinkReport| {
        let is_whole = program.refusal().is_none() && program.missing().next().is_none();
        !is_whole && !program.is_undecided()
    };
    let cannot_link = (link_report.as_ref()).is_some_and(|link_report| {
        link_report.weak_externs || link_report.programs.iter().any(is_unresolved)
    });
    let linked_for = kernel.map(|kernel| LinkedFor {
        kernel,
        assumed: assumed(kernel, FOR_LINKING),
    });
    let shown = Shown {
        file: name,
        size: file.len(),
        object: &object,
        overview: &overview,
        link_report: linked_for.as_ref().zip(link_report.as_ref()),
        all: args.all,
        width,
        hints: Hints {
            rest: " (--all lists them)",
            undecided: " (--btf FILE, --kernel running decide)",
        },
    };
    match (args.format.format(), args.needs_at_most) {
        (AnswerFormat::Json, _) => text.extend(json(&object_json(&shown))),
        (AnswerFormat::Text, Some(release)) => {
            text.extend(needs_newer_text(&shown, release).into_bytes());
            kernel.inspect(|kernel| note_assumed(kernel, FOR_LINKING, "linked"));
        }
        (AnswerFormat::Text, None) => text.extend(object_text(&shown).into_bytes()),
    }
    if let (Some(kernel), Some(link_report)) = (kernel, &link_report)
        && kernel_lacks_feature(link_report)
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
