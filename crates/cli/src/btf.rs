//! `beebox btf`: one module per subcommand.

mod diff;
mod dump;
mod input;
mod show;

use clap::Subcommand;

pub(crate) use input::find;

use crate::answer::{Answer, Failure};

/// Show, print and compare the types of programs and kernels
///
/// A FILE is raw BTF (as in /sys/kernel/btf), or an ELF file with a section .BTF, such as a
/// BPF object or a kernel image.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dump(dump::Args),
    Show(show::Args),
    Diff(diff::Args),
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    match args.command {
        Command::Dump(args) => dump::run(args),
        Command::Show(args) => show::run(args),
        Command::Diff(args) => diff::run(args),
    }
}
