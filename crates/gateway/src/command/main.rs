//! The command `beebox-gateway`: one module per subcommand.
#![forbid(unsafe_code)]

extern crate beebox_gateway as gateway;
#[macro_use]
extern crate command;

mod attach;
mod compile;
mod control;
mod detach;
mod diff;
mod explain;
mod import;
mod input;
mod kernel;
mod run;
mod update;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use command::answer::{Answer, Failure};
use command::unused_options::{Needs::Absent, Rule};
use command::{completions, version};

const RULES: &[Rule] = &[
    Rule {
        command: "run",
        needs: Absent("per_packet"),
        options: &[&["top"]],
    },
    Rule {
        command: "compile",
        needs: Absent("no_analysis"),
        options: &[&["budget"]],
    },
];

/// Compile, run, explain and compare access rules of a packet gateway
///
/// RULES is a file with a rule on a line: an action (pass, drop, redirect INTERFACE, count,
/// sample 1/N), then what it matches: `proto tcp from 10.0.0.0/8 to 192.0.2.0/24 port 80,443`.
/// The first rule that matches decides; `default drop` decides about other packets.
#[derive(Parser)]
#[command(
    name = "beebox-gateway",
    version,
    long_version = version::long(),
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 done, 1 import left out a rule, compile found one that decides about no packet,
or diff a change; 2 could not answer.

Examples:
  iptables-save | beebox-gateway import --from iptables-save - -o office.rules
  beebox-gateway compile office.rules -o office.state     sizes, and rules that decide nothing
  beebox-gateway run office.rules --pcap day.pcap -w kept.pcap
  beebox-gateway explain office.rules \\
      --packet 'proto udp from 10.0.0.1 port 4000 to 192.0.2.1 port 53'
  beebox-gateway diff office.rules new.rules
  beebox-gateway attach eth0 office.rules --every 60      as root
  beebox-gateway update eth0 new.rules                    replaces the rules of attach
  beebox-gateway detach eth0                              ends attach
"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Import(import::Args),
    Compile(compile::Args),
    Run(run::Args),
    Explain(explain::Args),
    Diff(diff::Args),
    Attach(attach::Args),
    Update(update::Args),
    Detach(detach::Args),
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions(completions::Args),
    Man(completions::ManArgs),
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  beebox-gateway completions bash > ~/.local/share/bash-completion/completions/beebox-gateway
  beebox-gateway completions zsh > ~/.zfunc/_beebox-gateway
  beebox-gateway completions fish > ~/.config/fish/completions/beebox-gateway.fish";

fn main() -> ExitCode {
    command::main(std::env::args_os(), RULES, run_command).into()
}

fn run_command(cli: Cli) -> Result<Answer, Failure> {
    match cli.command {
        Command::Import(args) => import::run(args),
        Command::Compile(args) => compile::run(args),
        Command::Run(args) => run::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Attach(args) => attach::run(args),
        Command::Update(args) => update::run(args),
        Command::Detach(args) => detach::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => completions::write_man_pages(args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_commands_and_arguments() {
        command::unused_options::check_names(RULES, Cli::command());
    }
}
