//! Tests of the crate, in one executable.

mod compressed;
mod formats;
mod merged;
mod properties;

fn main() -> std::process::ExitCode {
    oracle::main()
}
