//! `cargo differential`: comparisons of Beebox with the running kernel, with libbpf and of its
//! engines with each other, for longer than tests take.
#![deny(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match command::Arguments::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::FAILURE
        }
    }
}
