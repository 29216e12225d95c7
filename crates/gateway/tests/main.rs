//! Tests of the crate, in one executable.

mod analysis;
mod cli;
mod first_match;
mod hotdrop;
mod import;
mod kernel;
mod memory;
mod netfilter;
mod nftables;
mod rules;
mod support;
mod update;

fn main() -> std::process::ExitCode {
    oracle::main()
}
