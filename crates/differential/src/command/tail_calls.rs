//! `cargo differential compare tail-calls`: the kernel's own tests; `cargo differential soak tail-calls`: native code that makes tail calls on several threads, while
//! others change the targets.

mod selftests;

pub(crate) use selftests::compare as compare_selftests;

use std::time::Duration;

use beebox_differential::tail_calls::{Stress, stress};

use crate::command::Outcome;

/// Threads that run programs, each number for an equal part of the time.
const RUNNERS: [u32; 2] = [2, 8];
/// Threads that change targets.
const WRITERS: u32 = 2;

/// Runs for so many seconds.
pub(crate) fn change_targets(seconds: u64) -> Outcome {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    for runners in RUNNERS {
        let request = Stress {
            runners,
            writers: WRITERS,
            runs: u64::MAX,
            time: Some(Duration::from_secs(seconds) / RUNNERS.len() as u32),
            seed: runners.into(),
        };
        let tally = stress(&kernel, &registry, &request)?;
        println!(
            "{runners} threads run, {WRITERS} change targets: {} runs, {} tail calls, {} changes; \
             every trace is legal",
            tally.runs, tally.tail_calls, tally.changes
        );
    }
    Ok(())
}
