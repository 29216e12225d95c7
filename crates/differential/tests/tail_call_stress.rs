//! Tail calls of native code while other threads change their targets: `cargo differential soak
//! tail-calls` for longer.

use beebox_differential::tail_calls::{Stress, stress};

#[oracle::test]
fn every_run_leaves_a_legal_trace_while_targets_change() {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    for runners in [2, 8] {
        let request = Stress {
            runners,
            writers: 2,
            runs: 40_000 / u64::from(runners),
            time: None,
            seed: 17,
        };
        let tally = stress(&kernel, &registry, &request);
        let tally = tally.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(tally.runs, 40_001);
        assert!(tally.changes > 0 && tally.tail_calls >= 33, "{tally:?}");
    }
}
