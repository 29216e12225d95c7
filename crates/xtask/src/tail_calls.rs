//! `cargo xtask oracle tail-calls`: the kernel's own tests; `cargo xtask soak tail-calls`: native code that makes tail calls on several threads, while
//! others change the targets.

mod selftests;

pub(crate) use selftests::compare as compare_selftests;

use std::time::Duration;

use testkit::tail_calls::{Stress, stress};

use crate::Outcome;

/// Seconds if no number is given.
const SECONDS: u64 = 600;
/// Threads that run programs, each number for an equal part of the time.
const RUNNERS: [u32; 2] = [2, 8];
/// Threads that change targets.
const WRITERS: u32 = 2;

/// Runs for `[--seconds N]`.
pub(crate) fn change_targets(words: &[&str]) -> Outcome {
    let seconds = match words {
        [] => SECONDS,
        ["--seconds", seconds] => {
            let number = seconds.parse();
            number.map_err(|_| format!("{seconds:?} is no number of seconds"))?
        }
        _ => return Err("a soak of tail calls takes --seconds N".into()),
    };
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
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
