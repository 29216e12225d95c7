//! The `beebox` command: one module per subcommand, each with its arguments and
//! a `run` that answers yes, no, or why it could not answer.
#![deny(unsafe_code)]

/// Writes a line to standard error.
macro_rules! diagnostic {
    ($($argument:tt)*) => { crate::answer::write_diagnostic(&format!($($argument)*)) };
}

mod answer;
mod answer_format;
mod asm;
mod btf;
mod capture_file;
mod case_input;
mod completions;
mod conformance;
mod dis;
mod file_hint;
mod filter;
mod gateway;
mod generate;
mod kernel_input;
mod kfuncs;
mod link;
mod object_input;
mod output_file;
mod output_path;
mod program_input;
mod program_output;
mod run;
mod seccomp;
mod show;
mod unused_options;
mod verify;
mod version;

use std::io::{self, Write};
use std::process::ExitCode;

use answer::Answer;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use program_output::written;

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
enum Command {
    Filter(filter::Args),
    Asm(asm::Args),
    Dis(dis::Args),
    Run(Box<run::Args>),
    ConformancePlugin(conformance::Args),
    Seccomp(seccomp::Args),
    Btf(btf::Args),
    Show(show::Args),
    Link(link::Args),
    Gen(generate::Args),
    Verify(verify::Args),
    Gateway(gateway::Args),
    Kfuncs(kfuncs::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
}

/// Has every option take negative numbers as values, so that the error of one names its range
/// instead of an option `-1`.
fn take_negative_numbers(command: clap::Command) -> clap::Command {
    let take = |arg: clap::Arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    };
    command
        .mut_args(take)
        .mut_subcommands(take_negative_numbers)
}

fn main() -> ExitCode {
    let mut command = take_negative_numbers(Cli::command());
    let matches = match command.try_get_matches_from_mut(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => return show_parsed(&error),
    };
    if let Err(failure) = unused_options::check(&command, &matches) {
        return failure.report();
    }
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return show_parsed(&error),
    };
    let answer = match cli.command {
        Command::Filter(args) => filter::run(args),
        Command::Asm(args) => asm::run(args),
        Command::Dis(args) => dis::run(args),
        Command::Run(args) => run::run(*args),
        Command::ConformancePlugin(args) => conformance::run(args),
        Command::Seccomp(args) => seccomp::run(args),
        Command::Btf(args) => btf::run(args),
        Command::Show(args) => show::run(args),
        Command::Link(args) => link::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Gateway(args) => gateway::run(args),
        Command::Kfuncs(args) => kfuncs::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => completions::write_man_pages(args, Cli::command()),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(failure) => failure.report(),
    }
}

/// Shows help, the version or what is wrong with the arguments.
fn show_parsed(error: &clap::Error) -> ExitCode {
    let shown = error.print().and_then(|()| io::stdout().flush());
    match written(shown) {
        // A closed standard error leaves no place to say so.
        _ if error.use_stderr() => ExitCode::from(2),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
