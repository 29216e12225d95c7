//! Options that do nothing beside others, which are refused.
//!
//! Clap refuses pairs that exclude each other, and asks for an option that another needs, but not
//! where a third excludes it. What an option needs to act is in a table of each command, by the
//! names of clap's arguments.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::answer::Failure;

/// Options of a command that act only if a condition holds.
pub struct Rule {
    /// The command, and the one below it.
    pub command: &'static str,
    /// What has to hold.
    pub needs: Needs,
    /// Names of clap's arguments.
    pub options: &'static [&'static [&'static str]],
}

/// A condition of the other arguments.
#[derive(Clone, Copy)]
pub enum Needs {
    /// This argument is given; the remedy.
    Given(&'static str, &'static str),
    /// This argument is not given.
    Absent(&'static str),
    /// This argument has this value; the remedy.
    Is(&'static str, &'static str, &'static str),
    /// This argument has another value.
    IsNot(&'static str, &'static str),
    /// No argument makes it act, since other commands share it; what the command does not do.
    Never(&'static str),
}

/// Fails for an option that does nothing beside the others.
pub fn check(rules: &[Rule], command: &clap::Command, matches: &ArgMatches) -> Result<(), Failure> {
    let (mut path, mut command, mut matches) = (String::new(), command, matches);
    while let Some((name, below)) = matches.subcommand() {
        if !path.is_empty() {
            path.push(' ');
        }
        path.push_str(name);
        let found = command.find_subcommand(name);
        command = found.expect("clap has parsed it");
        matches = below;
    }
    let rules = rules.iter().filter(|rule| rule.command == path);
    for rule in rules {
        if rule.needs.hold(matches) {
            continue;
        }
        let mut options = rule.options.iter().copied().flatten();
        if let Some(option) = options.find(|option| is_given(matches, option)) {
            return Err(rule.needs.refusal(command, option));
        }
    }
    Ok(())
}

/// True if the command line has an argument.
fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// True if an argument has a value, given or by default.
fn has_value(matches: &ArgMatches, name: &str, value: &str) -> bool {
    let mut values = matches.get_raw(name).into_iter().flatten();
    values.any(|given| given == value)
}

use Needs::{Absent, Given, Is, IsNot, Never};

impl Needs {
    fn hold(self, matches: &ArgMatches) -> bool {
        match self {
            Given(name, _) => is_given(matches, name),
            Absent(name) => !is_given(matches, name),
            Is(name, value, _) => has_value(matches, name, value),
            IsNot(name, value) => !has_value(matches, name, value),
            Never(_) => false,
        }
    }

    /// The refusal of an option of a command.
    fn refusal(self, command: &clap::Command, option: &str) -> Failure {
        let option = shown(command, option);
        match self {
            Given(name, remedy) => {
                let what = format_args!("{option} does nothing without {}", shown(command, name));
                Failure::new(what).hint(remedy)
            }
            Is(name, value, remedy) => {
                let needed = format!("{} {value}", shown(command, name));
                Failure::new(format_args!("{option} does nothing without {needed}")).hint(remedy)
            }
            Absent(name) => {
                let other = shown(command, name);
                let what = format_args!("{option} does nothing with {other}");
                Failure::new(what).hint(format_args!("no {option}, or no {other}"))
            }
            IsNot(name, value) => {
                let other = format!("{} {value}", shown(command, name));
                let what = format_args!("{option} does nothing with {other}");
                Failure::new(what).hint(format_args!("no {option}, or no {other}"))
            }
            Never(why) => {
                let name = command.get_name();
                let what = format_args!("{option} does nothing with {name}: {why}");
                Failure::new(what).hint(format_args!("no {option}"))
            }
        }
    }
}

/// The name of an argument as users write it.
fn shown(command: &clap::Command, name: &str) -> String {
    let argument = command.get_arguments().find(|arg| arg.get_id() == name);
    match argument.map(|arg| (arg.get_long(), arg.get_short())) {
        Some((Some(long), _)) => format!("--{long}"),
        Some((None, Some(short))) => format!("-{short}"),
        Some((None, None)) | None => name.to_owned(),
    }
}

/// Panics if a rule names no command or argument. For tests.
pub fn check_names(rules: &[Rule], mut all: clap::Command) {
    all.build();
    for rule in rules {
        let words = rule.command.split(' ');
        let command = words.fold(&all, |command, name| {
            let found = command.find_subcommand(name);
            found.unwrap_or_else(|| panic!("no command {}", rule.command))
        });
        let needed = match rule.needs {
            Given(name, _) | Absent(name) | Is(name, ..) | IsNot(name, _) => Some(name),
            Never(_) => None,
        };
        for name in rule.options.iter().copied().flatten().chain(&needed) {
            let mut arguments = command.get_arguments();
            assert!(
                arguments.any(|arg| arg.get_id() == *name),
                "{} has no {name}",
                rule.command
            );
        }
    }
}
