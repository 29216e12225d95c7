//! The `beebox` command: one module per subcommand, each with its arguments and
//! a `run` that answers yes, no, or why it could not answer. The executable calls [`main`], and so
//! does the entry point of the Python package.
//!
//! # Modules
//!
//! A module reads the arguments, asks the library, and prints its answer, which has methods for text
//! and for data. `object_input.rs` opens objects, `test/host.rs` those of tests, `dis/native.rs` is the
//! disassembler that native code is listed with, `exec/trusted.rs` passes on the user's assertion of
//! safety, `filter/profile.rs` writes for the profiler.
#![deny(unsafe_code)]

#[macro_use]
extern crate command;

mod ask;
mod asm;
mod btf;
mod case_input;
mod coverage;
mod debug;
mod dis;
mod engine;
mod exec;
mod filter;
mod fuzz;
mod generate;
mod kfuncs;
mod limits;
mod link;
mod loading;
mod log_level;
mod mutate;
mod object_input;
mod program_input;
mod program_output;
mod run;
mod seccomp;
mod show;
mod test;
mod unused_options;
mod verify;

use std::ffi::OsString;

use answer::{Answer, Failure};
use clap::{CommandFactory, Parser, Subcommand};
use command::{
    answer, answer_format, capture_file, completions, input, kernel_input, nearest, output_file,
    output_path, stdout, type_file, version,
};

/// The Linux BPF machine in user space: no kernel, no root.
#[derive(Parser)]
#[command(
    name = "beebox",
    version,
    long_version = version::long(),
    propagate_version = true,
    after_help = "\
Exit codes: 0 yes, 1 the answer is no, 2 could not answer."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    Filter(filter::Args),
    Asm(asm::Args),
    Dis(dis::Args),
    Run(Box<run::Args>),
    Debug(Box<debug::Args>),
    Exec(exec::Args),
    Seccomp(seccomp::Args),
    Btf(btf::Args),
    Show(show::Args),
    Link(link::Args),
    Gen(generate::Args),
    Verify(verify::Args),
    Ask(ask::Args),
    Coverage(coverage::Args),
    Test(Box<test::Args>),
    Fuzz(Box<fuzz::Args>),
    Mutate(Box<mutate::Args>),
    Gateway(GatewayArgs),
    Kfuncs(kfuncs::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
}

/// The gateway, a command of its own: `beebox-gateway`
#[derive(clap::Args)]
#[command(hide = true, disable_help_flag = true)]
struct GatewayArgs {
    /// What `beebox-gateway` takes
    #[arg(
        value_name = "WORD",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

fn name_gateway(args: &GatewayArgs) -> Failure {
    let words = args.words.iter().map(|word| format!(" {word}"));
    Failure::new("the gateway is a command of its own").hint(format_args!(
        "beebox-gateway{}, of the package beebox-gateway",
        words.collect::<String>()
    ))
}

/// Runs the command with these arguments, of which the first is its name; the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    command::main(arguments, unused_options::RULES, run_command)
}

fn run_command(cli: Cli) -> Result<Answer, Failure> {
    match cli.command {
        Command::Filter(args) => filter::run(args),
        Command::Asm(args) => asm::run(args),
        Command::Dis(args) => dis::run(args),
        Command::Run(args) => run::run(*args),
        Command::Debug(args) => debug::run(&args),
        Command::Exec(args) => exec::run(args),
        Command::Seccomp(args) => seccomp::run(args),
        Command::Btf(args) => btf::run(args),
        Command::Show(args) => show::run(args),
        Command::Link(args) => link::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Ask(args) => ask::run(&args),
        Command::Coverage(args) => coverage::run(args),
        Command::Test(args) => test::run(*args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Mutate(args) => mutate::run(&args),
        Command::Gateway(args) => Err(name_gateway(&args)),
        Command::Kfuncs(args) => kfuncs::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => completions::write_man_pages(args, Cli::command()),
    }
}
