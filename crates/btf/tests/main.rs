//! Tests of the crate, in one executable.

mod bpftool;
mod chains;
mod core;
mod fields;
mod kernel_types;
mod merging;
mod modules;
mod refusals;
mod show;
mod spellings;

fn main() -> std::process::ExitCode {
    oracle::main()
}
