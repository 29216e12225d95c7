//! `beebox gen`: one module for each kind of output.

mod bindings;
mod min_core_btf;

use clap::Subcommand;

use crate::answer::{Answer, Failure};

/// Generate files from objects: C headers, Rust bindings, minimal BTF for CO-RE
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Header(bindings::HeaderArgs),
    Rust(bindings::RustArgs),
    MinCoreBtf(min_core_btf::Args),
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    match args.command {
        Command::Header(args) => bindings::write_header(args),
        Command::Rust(args) => bindings::write_rust(args),
        Command::MinCoreBtf(args) => min_core_btf::run(args),
    }
}
