//! `beebox link`: links objects as bpftool gen object does.

use std::path::PathBuf;

use beebox::internal::object::Linker;
use beebox::internal::object::elf::ElfFault;
use beebox::internal::object::{Blame, Error, Problem};

use crate::answer::{Answer, Failure};
use crate::input::{check_streams, name, read_at_most};
use crate::output_path::OutputPath;
use crate::stdout::write_bytes;

/// The largest object that is read.
const MAX_BYTES: u64 = 1 << 30;

/// Link BPF objects into one, as bpftool gen object does
///
/// Extern functions, variables and maps of one file are resolved by definitions of
/// another, with equal types; strong definitions override weak ones; static symbols stay
/// separate. BTF is merged and deduplicated, debug sections are dropped. The result is
/// the same bytes as libbpf's linker writes.
///
/// Exit codes: 0 linked, 1 the files conflict or need what linking can't do, 2 a file
/// can't be read or is damaged.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox link -o prog.bpf.o main.bpf.o parse.bpf.o maps.bpf.o
  beebox link -o small.bpf.o prog.bpf.o        one object: its debug sections go")]
pub(crate) struct Args {
    /// Output file of the linked object (`-` is standard output)
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// The objects, in the order of their sections (`-` is standard input)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    check_streams(args.files.iter().map(PathBuf::as_path))?;
    let output = OutputPath::new(&args.output, args.files.iter().map(PathBuf::as_path))?;
    let files = args
        .files
        .iter()
        .map(|path| Ok((name(path), read_at_most(path, MAX_BYTES)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    match link(&files) {
        Ok(object) => {
            write_bytes(&object, Some(output))?;
            Ok(Answer::Yes)
        }
        Err(error) if error.blame() == Blame::User => {
            diagnostic!("beebox: {error}");
            Ok(Answer::No)
        }
        Err(error) => {
            let failure = Failure::new(&error);
            Err(match error.problem() {
                Problem::Elf(ElfFault::NotElf) => {
                    failure.hint("an object that clang -target bpf -c writes")
                }
                _ => failure,
            })
        }
    }
}

fn link(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Error> {
    let mut linker = Linker::new();
    for (name, bytes) in files {
        linker = linker.add(name, bytes)?;
    }
    linker.finish()
}
