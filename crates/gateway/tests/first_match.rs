//! The rule of the table, and of the programs in both engines, is the first one that matches.

use crate::support;
use crate::support::Dice;
use beebox::Engine;
use beebox::internal::run::{LoadOptions, SplitMix};
use beebox_gateway::{Action, Capacity, Compiled, Header, Hook, Plane, RuleSet};

/// Names of verdicts of XDP and tc.
fn verdict(hook: Hook, action: &Action) -> &'static str {
    match (hook, action) {
        (Hook::Xdp, Action::Drop) => "XDP_DROP",
        (Hook::Xdp, Action::Redirect(_)) => "XDP_REDIRECT",
        (Hook::Xdp, _) => "XDP_PASS",
        (Hook::Tc, Action::Drop) => "TC_ACT_SHOT",
        (Hook::Tc, Action::Redirect(_)) => "TC_ACT_REDIRECT",
        (Hook::Tc, _) => "TC_ACT_OK",
    }
}

#[oracle::test]
fn tables_find_the_first_rule_that_matches() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let set = support::rules(&mut dice, if seed % 20 == 0 { 2_000 } else { 60 });
        let text = set.to_string();
        assert_eq!(RuleSet::parse(&text).unwrap(), set, "{text}");
        let compiled = Compiled::new(&set).unwrap();
        for _ in 0..500 {
            let header = Header::of(&support::frame(&mut dice));
            let (found, expected) = (compiled.table().lookup(&header), set.first_match(&header));
            assert_eq!(found, expected, "seed {seed}: {header:?}\n{text}");
        }
    }
}

#[oracle::test]
fn programs_find_the_first_rule_that_matches() {
    let kernel = kernel_data::linux_6_18();
    for (seed, hook, engine) in [
        (1, Hook::Xdp, Engine::Native),
        (2, Hook::Tc, Engine::Native),
        (3, Hook::Xdp, Engine::Checked),
        (4, Hook::Tc, Engine::Checked),
    ] {
        let mut dice = Dice::new(seed);
        let sets = if engine == Engine::Native { 6 } else { 2 };
        let packets = if engine == Engine::Native { 2_000 } else { 200 };
        let first = support::rules(&mut dice, 300);
        let capacity = Capacity {
            table: 1 << 20,
            rules: 300,
        };
        let compiled = Compiled::new(&first).unwrap();
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        let table = compiled.table();
        let plane = Plane::load(table, hook, capacity, &kernel, true, &options).unwrap();
        let mut set = first;
        for _ in 0..sets {
            let mut random = SplitMix::new(1);
            let mut expected_hits = vec![0; set.rules.len() + 3];
            {
                let mut program = plane.program(hook, 0, &mut random).unwrap();
                assert_eq!(program.engine(), engine, "{:?}", program.fallback_reason());
                for _ in 0..packets {
                    let frame = support::frame(&mut dice);
                    // The test run takes no shorter ones.
                    if frame.len() < 54 {
                        continue;
                    }
                    let run = program.test_run(&frame).unwrap();
                    let expected = set.first_match(&Header::of(&frame)).rule;
                    let found = plane.last_rule(0).unwrap();
                    assert_eq!(found, Some(expected), "{frame:02x?}\n{set}");
                    let action = set.action(expected);
                    assert_eq!(run.verdict.name, verdict(hook, action), "{frame:02x?}");
                    expected_hits[expected as usize] += 1;
                }
            }
            set = support::rules(&mut dice, 300);
            let next = Compiled::new(&set).unwrap();
            let hits = plane.update(next.table()).unwrap();
            let hits: Vec<u64> = hits.iter().map(|hits| hits.packets).collect();
            assert_eq!(hits[..expected_hits.len()], expected_hits);
        }
    }
}
