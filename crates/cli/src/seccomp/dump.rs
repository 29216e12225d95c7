//! `beebox seccomp dump`: prints the filters of a process.

use std::path::{Path, PathBuf};

use super::input::of_process;
use crate::answer::{Answer, Failure};
use crate::output_path::OutputPath;
use crate::program_input::ClassicForm;
use crate::program_output::{ProgramFormat, filter_format, format_program, text_as, write_program};

/// Write the filters of a running process to files
///
/// A process with one filter gives the file OUT, one with several the files OUT.0,
/// OUT.1 and so on in the order of their installation. Reading them needs root.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp dump --pid 4711                          listings on standard output
  beebox seccomp dump --pid 4711 -o filter.bpf            one file for each filter
  beebox seccomp dump --pid 4711 --index 0 --format dd    the oldest, as a C array")]
pub(crate) struct Args {
    /// The process
    #[arg(long, value_name = "N")]
    pid: i32,
    /// Only the filter of this number, in the order of installation from 0
    #[arg(long, value_name = "N")]
    index: Option<usize>,
    /// Output file [default: standard output, as text]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Form of the filters [default: raw into a file, d on standard output]
    #[arg(long, value_name = "FORMAT", value_parser = text_as(ProgramFormat::Form(ClassicForm::D), ProgramFormat::is_classic))]
    format: Option<ProgramFormat>,
    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let filters = of_process(args.pid)?;
    let count = filters.len();
    let chosen: Vec<_> = match args.index {
        None => filters.into_iter().enumerate().collect(),
        Some(index) => filters
            .into_iter()
            .enumerate()
            .skip(index)
            .take(1)
            .collect(),
    };
    if chosen.is_empty() {
        return Err(Failure::new(format_args!(
            "process {} has no filter {}: its filters are numbered 0 to {}",
            args.pid,
            args.index.unwrap_or_default(),
            count - 1
        )));
    }
    let format = filter_format(args.format, args.json, args.output.is_some());
    let several = chosen.len() > 1;
    for (index, program) in &chosen {
        let bytes = format_program(&program.insns, format)?;
        let path = args.output.as_deref().map(|path| match several {
            true => numbered(path, *index),
            false => path.to_owned(),
        });
        write_program(&bytes, format, OutputPath::optional(path.as_deref(), [])?)?;
        if let Some(path) = path {
            let (name, length) = (&program.name, program.insns.len());
            diagnostic!(
                "{name}: {length} instructions, written to {}",
                path.display()
            );
        }
    }
    Ok(Answer::Yes)
}

/// The path with the number of a filter appended.
fn numbered(path: &Path, index: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{index}"));
    name.into()
}
