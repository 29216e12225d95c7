//! Generated programs get from our verifier what the running kernel's says: verdict,
//! counts and the last line of the log.

use beebox_testkit::verifier::{Agreement, compare_generated};

#[test]
fn generated_programs_get_the_kernels_answer() {
    const WHAT: &str = "generated programs and the running kernel's verifier";
    let kernel = sys::kernel::running();
    let Some(kernel) = oracle::found(WHAT, kernel) else {
        return;
    };
    let types = kernel.btf().ok_or("it has no BTF");
    let Some(types) = oracle::found(WHAT, types) else {
        return;
    };
    let registry = profile::linux_6_18_registry(types);
    let tally = compare_generated(&kernel, &registry, oracle::seeds(400), |_, _| ());
    let Some(tally) = oracle::found(WHAT, tally) else {
        return;
    };
    for difference in &tally.differences {
        eprintln!("{difference:#?}");
    }
    let accepted = 100 * tally.accepted / tally.compared().max(1);
    assert!((30..80).contains(&accepted), "{accepted} % are accepted");
    assert_eq!(tally.count(Agreement::Equal), tally.compared());
}
