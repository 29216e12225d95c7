//! The memory of a table: 64 MiB hold a set with 7,000 classes whose blocks all differ.

use beebox::internal::run::SplitMix;
use beebox_gateway::{Action, CapacityExceeded, Compiled, Ports, Rule, RuleSet};

const RULES: usize = 65_536;
/// Classes of each field of ports.
const CLASSES: u16 = 3_495;
/// Ranges of a rule in each field.
const RANGES: u16 = 24;

/// Ranges of some of the ports below the number of classes.
fn ports(random: &mut SplitMix) -> Ports {
    let step = CLASSES / RANGES;
    let ranges = (0..RANGES).map(|part| {
        let first = part * step + (random.next_u64() % u64::from(step / 2)) as u16;
        let len = 1 + (random.next_u64() % u64::from(step / 2)) as u16;
        (first, first + len)
    });
    Ports {
        ranges: ranges.collect(),
        ..Ports::default()
    }
}

fn dense_rules() -> RuleSet {
    let mut random = SplitMix::new(3);
    let rules = (0..RULES).map(|_| {
        let mut rule = Rule::new(Action::Pass);
        rule.protocols.list.push(6);
        rule.source_ports = ports(&mut random);
        rule.destination_ports = ports(&mut random);
        rule
    });
    RuleSet {
        rules: rules.collect(),
        ..RuleSet::default()
    }
}

#[oracle::test]
fn seven_thousand_classes_fit_64_mebibytes() {
    let compiled = Compiled::new(&dense_rules()).unwrap();
    let sizes = compiled.sizes();
    let classes: u32 = sizes.classes.iter().sum();
    assert!((6_800..=7_000).contains(&classes), "{sizes:?}");
    // Hardly two blocks are equal.
    assert!(sizes.blocks > classes as usize * 115, "{sizes:?}");
    assert!(sizes.table <= 64 << 20, "{sizes:?}");
    println!("{sizes:?}");
}

#[oracle::test]
fn sets_beyond_the_capacity_are_refused_with_the_limit() {
    let set = RuleSet {
        rules: vec![Rule::new(Action::Drop); RULES + 1],
        ..RuleSet::default()
    };
    let refused = Compiled::new(&set).unwrap_err();
    assert_eq!(refused, CapacityExceeded::Rules(65_537));
    assert_eq!(refused.to_string(), "65537 rules; a set has at most 65536");
}
