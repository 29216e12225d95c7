//! Generated programs, and programs with one instruction changed, get from our verifier
//! what the running kernel's says: verdict, counts and the last line of the log.

use beebox_differential::verifier::{
    Agreement, Tally, VerifierPair, compare_generated, compare_mutations,
};
use program::case::Case;
use spec::kernel::{Privileges, Source};
use testkit::ebpf::Choices;
use testkit::verifier::generated_case;

const ORACLE: &str = "the running kernel's verifier";

/// Runs a comparison, if there is a kernel to compare with.
fn with_verifiers(compare: impl FnOnce(&mut VerifierPair<'_>) -> Tally) -> Option<Tally> {
    with_verifiers_of(Privileges::ALL, compare)
}

/// Runs a comparison for a caller with some privileges.
fn with_verifiers_of(
    privileges: Privileges,
    compare: impl FnOnce(&mut VerifierPair<'_>) -> Tally,
) -> Option<Tally> {
    let kernel = oracle::found(ORACLE, sys::kernel::running())?;
    let kernel = kernel.with_privileges(privileges, Source::Given);
    let types = oracle::found(ORACLE, kernel.btf().ok_or("it has no BTF"))?;
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    let verifiers = VerifierPair::new(&kernel, &registry);
    let mut verifiers = oracle::found(ORACLE, verifiers.ok_or("bpf(2) is not allowed"))?;
    let exit = Case::parse(".type socket_filter\nr0 = 0\nexit").expect("a case");
    oracle::found(ORACLE, verifiers.kernel(&exit.program))?;
    Some(compare(&mut verifiers))
}

/// Every answer is equal, or one that we do not give.
fn assert_agreement(tally: &Tally) {
    for difference in &tally.differences {
        eprintln!("{difference:#?}");
    }
    assert_eq!(tally.differing(), 0, "{:?}", tally.agreements);
}

#[oracle::test]
fn generated_programs_get_the_kernels_answer() {
    let compared = with_verifiers(|verifiers| {
        let seeds = oracle::seeds(400);
        compare_generated(verifiers, seeds, |_, _| false).expect("programs")
    });
    let Some(tally) = compared else {
        return;
    };
    assert_agreement(&tally);
    assert_eq!(
        tally.count(Agreement::Unsupported),
        0,
        "{:?}",
        tally.unsupported
    );
    let accepted = 100 * tally.accepted() / tally.compared().max(1);
    assert!((35..75).contains(&accepted), "{accepted} % are accepted");
}

#[oracle::test]
fn callers_without_privileges_get_the_kernels_answer() {
    let of_bpf = Privileges {
        bpf: true,
        net_admin: true,
        ..Privileges::NONE
    };
    for (privileges, least) in [(Privileges::NONE, 25), (of_bpf, 8)] {
        let compared = with_verifiers_of(privileges, |verifiers| {
            compare_generated(verifiers, oracle::seeds(300), |_, _| false).expect("programs")
        });
        let Some(tally) = compared else {
            return;
        };
        assert_agreement(&tally);
        let accepted = 100 * tally.accepted() / tally.compared().max(1);
        assert!((least..75).contains(&accepted), "{accepted} % are accepted");
    }
}

#[oracle::test]
fn mutations_get_the_kernels_answer() {
    let compared = with_verifiers(|verifiers| {
        let mut tally = Tally::default();
        let types = verifiers.types().expect("types of the kernel");
        for seed in oracle::seeds(60) {
            let mut choices = Choices::from_seed(seed);
            let program = Case::parse(&generated_case(seed, types).1)
                .expect("a case")
                .program;
            let name = format!("seed {seed}");
            compare_mutations(verifiers, &mut tally, &mut choices, &name, &program, 10);
        }
        tally
    });
    let Some(tally) = compared else {
        return;
    };
    assert_agreement(&tally);
    assert!(tally.compared() > 300, "only {}", tally.compared());
    assert_eq!(tally.kinds.len(), 7, "{:?}", tally.kinds);
}
