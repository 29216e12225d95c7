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

use std::ffi::OsString;
use std::io::{self, Write};

use answer::{Answer, Failure};
use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use unused_options::Rule;

/// Parses arguments, of which the first is the name of the command, checks them by the rules, and
/// runs the command; the exit code.
pub fn main<P: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    rules: &[Rule],
    run: impl FnOnce(P) -> Result<Answer, Failure>,
) -> u8 {
    let mut command = take_negative_numbers(P::command());
    answer::set_command_name(command.get_name());
    let matches = match command.try_get_matches_from_mut(arguments) {
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

/// True if the value of a format is the name of a file.
fn is_file_for_format(error: &clap::Error) -> bool {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let value = text(ContextKind::InvalidValue);
    text(ContextKind::InvalidArg).starts_with("--format ") && value.contains(['.', '/'])
}

/// Shows help, the version or what is wrong with the arguments.
fn show_parsed(error: &clap::Error) -> u8 {
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
