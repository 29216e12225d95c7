//! Tests of the crate, in one executable.

mod bpf;
mod kernel;
mod libraries;

fn main() -> std::process::ExitCode {
    oracle::main()
}
