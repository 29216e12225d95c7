//! `beebox seccomp`: one module per subcommand.

mod assert;
mod check;
mod compile;
mod diff;
mod dis;
mod dump;
mod eval;
mod input;
mod table;
mod value;

use clap::Subcommand;

use crate::answer::{Answer, Failure};

/// Check, explain and compare seccomp filters
///
/// A filter is a file of `struct sock_filter` records (as libseccomp's
/// seccomp_export_bpf writes them), any of the text forms that `beebox asm`
/// reads, or a container profile in JSON (OCI or Docker) or YAML (Kubernetes), which is
/// compiled on the way. Several FILEs are filters of one process in the order of their
/// installation.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Eval(eval::Args),
    Table(table::Args),
    Diff(diff::Args),
    Assert(assert::Args),
    Compile(compile::Args),
    Dump(dump::Args),
    Dis(dis::Args),
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    match args.command {
        Command::Check(args) => check::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Table(args) => table::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Assert(args) => assert::run(args),
        Command::Compile(args) => compile::run(args),
        Command::Dump(args) => dump::run(args),
        Command::Dis(args) => dis::run(args),
    }
}

/// The budget of the analysis was exceeded.
fn too_complex(error: beebox::Error) -> Failure {
    Failure::new(error.to_string()).hint("beebox seccomp eval for single calls")
}
