//! Tests of the crate, in one executable.

mod text_errors;
mod text_inverse;
mod text_peers;

fn main() -> std::process::ExitCode {
    oracle::main()
}
