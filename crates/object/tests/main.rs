//! Tests of the crate, in one executable.

mod case;
mod core;
mod kernel_data;
#[cfg(target_os = "linux")]
mod limits;
mod linked;
mod linker;
mod loaders;
mod maps;
mod overview;
mod unlinked;

fn main() -> std::process::ExitCode {
    oracle::main()
}
