//! The executable `beebox`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    beebox_cli::main(std::env::args_os()).into()
}
