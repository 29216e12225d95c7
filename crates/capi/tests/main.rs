//! Tests of the C library.

mod header;

fn main() -> std::process::ExitCode {
    oracle::main()
}
