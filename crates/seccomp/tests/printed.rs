//! Printed tables, read back: on random filters, the conditions of the table are parsed
//! from their text and evaluated for random calls; exactly one case must hold, and its
//! action must equal that of running the filters. The same for differences.

use crate::formula;
use beebox_seccomp::{Action, Analysis, Arch, Case, FilterProgram, Stack, calls, diff};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::programs::{data_for, filter, interesting_arch};

/// The action of a case, with computed data evaluated.
fn action_of(case: &Case, call: &classic::SeccompData) -> Action {
    let Some(data) = &case.data else {
        return case.action;
    };
    let data = formula::value(data, call) as u32;
    Action::from_return(case.action.to_return() & 0xffff_0000 | data & 0xffff).effect()
}

/// The one case that holds for a call.
fn holding<'a>(cases: &'a [Case], call: &classic::SeccompData) -> &'a Case {
    let holds = |case: &&Case| formula::holds(&case.when.to_string(), call);
    let found: Vec<&Case> = cases.iter().filter(holds).collect();
    assert_eq!(found.len(), 1, "{call:?} in {cases:#?}");
    found[0]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100, rng_seed: RngSeed::Fixed(oracle::property_seed()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn tables_match_filters(
        programs in proptest::collection::vec(filter(), 1..3),
        seeds in proptest::collection::vec(any::<[u64; 8]>(), 60),
        arch in interesting_arch(),
    ) {
        let mut stack = Stack::default();
        for program in &programs {
            stack.install(FilterProgram::new(program).unwrap()).unwrap();
        }
        let mut analysis = Analysis::new(&stack).unwrap();
        let table = analysis.table(arch).unwrap();
        for seed in seeds {
            let call = data_for(&programs, arch, seed);
            let nr = call.nr as u32;
            let cases = match calls::name(arch, nr) {
                Some(_) => {
                    let group = table.groups.iter().find(|group| {
                        group.calls.iter().any(|&(known, _)| known == nr)
                    });
                    &group.unwrap().cases
                }
                None => {
                    let others = table.others.iter().find(|others| {
                        others.which == "all" || formula::holds(&others.which, &call)
                    });
                    // A number of x32 is none of x86_64.
                    let Some(others) = others else { continue };
                    &others.cases
                }
            };
            // An expression too long to print is not printed whole.
            if format!("{cases:?}").contains('…') {
                continue;
            }
            let case = holding(cases, &call);
            prop_assert_eq!(action_of(case, &call), stack.run(&call).effect(), "{:?}", call);
        }
    }

    #[test]
    fn differences_are_complete(
        first in filter(),
        second in filter(),
        seeds in proptest::collection::vec(any::<[u64; 8]>(), 60),
    ) {
        let programs = [first, second];
        let stack = |program: &Vec<_>| {
            let mut stack = Stack::default();
            stack.install(FilterProgram::new(program).unwrap()).unwrap();
            stack
        };
        let (one, two) = (stack(&programs[0]), stack(&programs[1]));
        // Filters that are too complex are counted.
        let found = diff(&one, &two);
        prop_assume!(found.is_ok());
        let found = found.unwrap();
        for contrast in found.iter().flat_map(|difference| &difference.contrasts) {
            if let Some(call) = &contrast.example {
                prop_assert_ne!(one.run(call).effect(), two.run(call).effect());
            }
        }
        if format!("{found:?}").contains('…') {
            return Ok(());
        }
        for seed in seeds {
            let call = data_for(&programs, Arch::X86_64, seed);
            let nr = call.nr as u32;
            let listed = found.iter().filter(|difference| {
                let named = difference.calls.iter().any(|&(known, _)| known == nr);
                let here = difference.arch == Some(Arch::X86_64) || difference.arch == Some(Arch::X32);
                let other = difference.others.as_ref().is_some_and(|which| {
                    which == "all" || formula::holds(which, &call)
                });
                here && (named || other)
            });
            let differs = listed
                .flat_map(|difference| &difference.contrasts)
                .any(|contrast| formula::holds(&contrast.when.to_string(), &call));
            prop_assert_eq!(differs, one.run(&call).effect() != two.run(&call).effect(), "{:?}", call);
        }
    }
}
