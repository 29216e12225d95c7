//! Tests of the C library.

mod c_programs;
mod header;

fn main() -> std::process::ExitCode {
    oracle::main()
}
