//! `cargo xtask soak gateway`: the gateway's comparisons with the running kernel, with more sets
//! of rules than its tests take.

use std::process::Command;

use crate::Outcome;

/// Sets of rules and packets of each if no numbers are given.
const AMOUNT: [u64; 2] = [1_000, 10_000];
/// Those that nftables gets.
const NFTABLES: &str = "50,1000";

/// Runs for `[SETS [PACKETS]]`.
pub(crate) fn compare(numbers: &[&str]) -> Outcome {
    if numbers.len() > 2 {
        return Err("a soak of the gateway takes SETS and PACKETS".into());
    }
    let sets = crate::soak::read(numbers, 0, AMOUNT[0])?;
    let packets = crate::soak::read(numbers, 1, AMOUNT[1])?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "test",
        "--locked",
        "--release",
        "--package",
        "beebox-gateway",
    ]);
    cargo.args([
        "--test",
        "it",
        "--",
        "--nocapture",
        "kernel::",
        "nftables::",
    ]);
    cargo.env("BEEBOX_GATEWAY_KERNEL", format!("{sets},{packets}"));
    cargo.env("BEEBOX_GATEWAY_NFTABLES", NFTABLES);
    match cargo.status()? {
        status if status.success() => Ok(()),
        status => Err(format!("the gateway's comparisons: {status}").into()),
    }
}
