//! Maps beside the running kernel's; `cargo differential soak maps` replays more.

use spec::kernel::Privileges;
use spec::maps::MapKind;

use beebox_differential::maps::{
    KINDS, MapComparison, NOT_MADE, WITHOUT_ELEMENTS, compare_creation, compare_definitions,
    compare_eviction, compare_operations,
};

/// Fails if anything differs, and prints the first differences.
fn assert_equal(comparison: &MapComparison) {
    for difference in comparison.differences.iter().take(5) {
        println!("{difference}");
    }
    assert!(comparison.differences.is_empty());
}

#[oracle::test]
fn maps_are_created_and_refused_as_in_the_kernel() {
    let compared = compare_creation(oracle::seeds(800));
    let Some(comparison) = oracle::found("maps of the running kernel", compared) else {
        return;
    };
    assert_equal(&comparison);
    assert!(
        comparison.successes > 50,
        "{} created",
        comparison.successes
    );
}

#[oracle::test]
fn programs_with_maps_of_any_definition_have_the_kernels_answer() {
    let some = |bpf, net_admin| Privileges {
        bpf,
        net_admin,
        ..Privileges::NONE
    };
    let callers = [
        (Privileges::ALL, 2000, 150),
        (some(true, false), 400, 20),
        (some(true, true), 400, 20),
        (Privileges::NONE, 400, 10),
    ];
    for (privileges, seeds, least) in callers {
        let compared = compare_definitions(oracle::seeds(seeds), privileges);
        let Some(comparison) = oracle::found("maps of the running kernel", compared) else {
            return;
        };
        assert_equal(&comparison);
        let successes = comparison.successes;
        assert!(successes >= least, "{successes} created: {privileges:?}");
    }
}

#[oracle::test]
fn operations_have_the_results_of_the_kernel() {
    for kind in KINDS.into_iter().filter(|kind| !NOT_MADE.contains(kind)) {
        for seed in oracle::seeds(2) {
            let compared = compare_operations(kind, seed, 6000);
            let Some(comparison) = oracle::found("maps of the running kernel", compared) else {
                return;
            };
            assert_equal(&comparison);
            // Programs of another class than the first one do not go into an array.
            let least = match kind {
                kind if WITHOUT_ELEMENTS.contains(&kind) => 0,
                MapKind::ProgArray => 100,
                _ => 500,
            };
            let successes = comparison.successes;
            assert!(successes >= least, "{kind:?}: {comparison:?}");
        }
    }
}

#[oracle::test]
fn lru_maps_keep_the_keys_that_the_kernel_keeps() {
    let compared = compare_eviction(oracle::seeds(400));
    let Some(comparison) = oracle::found("maps of the running kernel", compared) else {
        return;
    };
    assert_equal(&comparison);
    let kept = comparison.successes;
    assert!(kept > 1000, "{kept} keys are left");
}
