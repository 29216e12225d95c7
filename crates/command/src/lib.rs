//! What the commands `beebox` and `beebox-gateway` share: options and their checks, inputs,
//! outputs that are complete or absent, text and JSON on standard output, messages and exit
//! codes.
//!
//! # Modules
//!
//! `answer.rs` is exit code, message and remedy, `file_hint.rs` remedies for files,
//! `kernel_input.rs` the options that name a kernel, `kernel_list.rs` lists of kernels, `nearest.rs` the name that
//! was probably meant, `unused_options.rs` the check for options that do nothing, `output_file.rs` files that are complete or absent, `stdout.rs` text and JSON.
#![forbid(unsafe_code)]

/// Writes a line to standard error.
#[macro_export]
macro_rules! diagnostic {
    ($($argument:tt)*) => { $crate::answer::write_diagnostic(&format!($($argument)*)) };
}

pub mod answer;
pub mod answer_format;
pub mod capture_file;
pub mod completions;
mod file_hint;
pub mod input;
pub mod kernel_input;
pub mod kernel_list;
pub mod nearest;
pub mod output_file;
pub mod output_path;
pub mod stdout;
pub mod type_file;
pub mod unused_options;
pub mod version;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::{IntErrorKind, ParseIntError};

use answer::{Answer, Failure};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use unused_options::Rule;

/// Parses arguments, of which the first is the name of the command, checks them by the rules, and
/// runs the command; the exit code.
pub fn main<P: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    rules: &[Rule],
    run: impl FnOnce(P) -> Result<Answer, Failure>,
) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = P::command();
    answer::set_command_name(command.get_name());
    // Only the options of the command that is named are built, in which most of the time of a start
    // would go. Help, other errors and negative numbers need them all.
    let mut matches = command.try_get_matches_from_mut(&arguments);
    if matches
        .as_ref()
        .is_err_and(|error| error.kind() != ErrorKind::DisplayVersion)
    {
        command.build();
        command = take_negative_numbers(command, &arguments);
        matches = command.try_get_matches_from_mut(arguments);
    }
    let matches = match matches {
        Ok(matches) => matches,
        Err(error) => return show_parsed(&error),
    };
    if let Err(failure) = unused_options::check(rules, &command, &matches) {
        return failure.report();
    }
    let parsed = match P::from_arg_matches(&matches) {
        Ok(parsed) => parsed,
        Err(error) => return show_parsed(&error),
    };
    match run(parsed) {
        Ok(Answer::Yes) => 0,
        Ok(Answer::No) => 1,
        Err(failure) => failure.report(),
    }
}

/// Has every option of the commands that arguments may name take negative numbers as values, so that the error of
/// one names its range instead of an option `-1`.
fn take_negative_numbers(command: clap::Command, arguments: &[OsString]) -> clap::Command {
    let take = |arg: clap::Arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    };
    let is_named = |name: &str| arguments.iter().any(|word| word == name);
    let named = command.get_subcommands().filter(|command| {
        let mut names = command.get_all_aliases().chain([command.get_name()]);
        names.any(is_named)
    });
    let named: Vec<String> = named.map(|command| command.get_name().to_owned()).collect();
    named
        .into_iter()
        .fold(command.mut_args(take), |command, name| {
            command.mut_subcommand(name, |command| take_negative_numbers(command, arguments))
        })
}

/// True if the value of a format is the name of a file.
fn is_file_for_format(error: &clap::Error) -> bool {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let value = text(ContextKind::InvalidValue);
    text(ContextKind::InvalidArg).starts_with("--format ") && value.contains(['.', '/'])
}

/// The error of a value that is no number of an option, in words that say what is one; clap repeats
/// those of the standard library, and ranges up to the largest number.
fn explain_number(error: &clap::Error) -> Option<clap::Error> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (
        text(ContextKind::InvalidArg)?,
        text(ContextKind::InvalidValue)?,
    );
    let cause = error.source()?;
    let expected = match cause
        .downcast_ref::<ParseIntError>()
        .map(ParseIntError::kind)
    {
        Some(IntErrorKind::PosOverflow) => "the number is too large".to_owned(),
        Some(_) if value.starts_with('-') => "a number without a sign is expected".to_owned(),
        Some(_) => "a whole number is expected".to_owned(),
        None => {
            let cause = cause.to_string();
            let range = cause.strip_suffix(&format!("..{}", u64::MAX))?;
            let (_, first) = range.rsplit_once(" is not in ")?;
            format!("a number from {first} on is expected")
        }
    };
    let what = format!("invalid value '{value}' for '{option}': {expected}");
    let help = "For more information, try '--help'.";
    let what = format!("{what}\n\n{help}\n");
    Some(clap::Error::raw(error.kind(), what))
}

/// Shows help, the version or what is wrong with the arguments.
fn show_parsed(error: &clap::Error) -> u8 {
    if let Some(explained) = explain_number(error) {
        return show_parsed(&explained);
    }
    let shown = error.print().and_then(|()| io::stdout().flush());
    if is_file_for_format(error) {
        diagnostic!("  tip: --format and verify's -o name a format; --output OUT names a file");
    }
    match stdout::written(shown) {
        // A closed standard error leaves no place to say so.
        _ if error.use_stderr() => 2,
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}
