//! `beebox gen`: one module for each kind of output.

mod min_core_btf;

use clap::Subcommand;

use crate::answer::{Answer, Failure};

/// Generate files from objects: a minimal BTF for CO-RE
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    MinCoreBtf(min_core_btf::Args),
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    match args.command {
        Command::MinCoreBtf(args) => min_core_btf::run(args),
    }
}
