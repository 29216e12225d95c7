//! `cargo differential soak gateway`: the gateway's comparisons with the running kernel, with more sets
//! of rules than its tests take.

use std::process::Command;

use crate::command::Outcome;

/// Sets of rules and packets that nftables gets.
const NFTABLES: &str = "50,1000";

/// Compares so many sets of rules on so many packets each.
pub(crate) fn compare(sets: u64, packets: u64) -> Outcome {
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
