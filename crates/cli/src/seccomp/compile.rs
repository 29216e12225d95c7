//! `beebox seccomp compile`: compiles a container profile to a filter.

use std::path::PathBuf;

use beebox::internal::seccomp::profile::ProgramShape;
use beebox::internal::text::Form;

use super::input::{ProfileOptions, note_text, read_bytes};
use crate::answer::{Answer, Failure};
use crate::output_path::OutputPath;
use crate::program_input::ClassicForm;
use crate::program_output::{ProgramFormat, filter_format, format_program, text_as, write_program};

/// Compile a container profile (OCI or Docker JSON, or YAML) to a filter
///
/// The filter does what runc and libseccomp do with the profile on such a machine. Every
/// condition on a 64-bit argument compares both halves. Names that an architecture does
/// not have are skipped, as in runc.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp compile profile.json -o filter.bpf
  beebox seccomp compile profile.json --cap CAP_SYS_ADMIN --kernel-version 4.19 --format d
  beebox seccomp compile profile.json --machine aarch64 --linear -o filter.bpf")]
pub(crate) struct Args {
    /// The profile (`-` is standard input)
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    /// Output file of the filter [default: standard output, as text]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Form of the filter [default: raw into a file, d on standard output]
    #[arg(long, value_name = "FORMAT", value_parser = text_as(ProgramFormat::Form(ClassicForm::D), ProgramFormat::is_classic))]
    format: Option<ProgramFormat>,
    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    options: ProfileOptions,
    /// Find numbers by a balanced tree of comparisons (the default)
    #[arg(long, conflicts_with = "linear")]
    tree: bool,
    /// Compare numbers one after the other
    #[arg(long)]
    linear: bool,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = OutputPath::optional(args.output.as_deref(), [args.profile.as_path()])?;
    let (name, bytes) = read_bytes(&args.profile)?;
    // The tree is also what a profile becomes in every other command.
    let shape = if args.linear {
        ProgramShape::Linear
    } else {
        ProgramShape::Tree
    };
    let compiled = args.options.compile(&name, &bytes, shape)?;
    for note in &compiled.notes {
        diagnostic!("{name}: note: {}", note_text(note));
    }
    let format = filter_format(args.format, args.json, args.output.is_some());
    let code = match format {
        ProgramFormat::Form(ClassicForm::Raw) => {
            // In the byte order of the machine that installs it.
            beebox::internal::text::write(&compiled.program, Form::Raw(args.options.byte_order()?))
        }
        format => format_program(&compiled.program, format)?,
    };
    write_program(&code, format, output)?;
    let archs: Vec<_> = compiled
        .architectures
        .iter()
        .map(|arch| arch.name())
        .collect();
    let count = compiled.program.len();
    diagnostic!("{name}: {count} instructions for {}", archs.join(", "));
    Ok(Answer::Yes)
}
