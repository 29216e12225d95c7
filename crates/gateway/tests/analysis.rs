//! Shadowed and unreachable rules and differences of sets: against the definition on small
//! spaces, and on examples.

use crate::support;
use crate::support::Dice;
use beebox_gateway::analysis::{BUDGET, changes, shadowed, unreachable};
use beebox_gateway::{Header, RuleSet};

fn set(text: &str) -> RuleSet {
    RuleSet::parse(text).unwrap()
}

#[test]
fn rules_without_packets_are_found() {
    let set = set("\
pass proto tcp from 10.0.0.0/8
drop proto tcp from 10.1.0.0/16 to any port 80
drop proto udp from any port 0-999
drop proto udp from any port 1000-65535
pass proto udp from any port 5 to 192.0.2.1
pass proto udp
pass proto udp,tcp from 10.0.0.0/9
");
    let found: Vec<_> = shadowed(&set).iter().map(|it| (it.rule, it.by)).collect();
    assert_eq!(found, [(2, 1), (5, 3),]);
    let found = unreachable(&set, BUDGET);
    // Rule 6 is reached by fragments, whose ports are unknown.
    assert_eq!(found.rules, [2, 5, 7]);
    assert!(found.undecided.is_empty());
    let found = unreachable(&set, 0);
    assert!(found.rules.is_empty());
    assert_eq!(found.undecided.first(), Some(&2));
}

#[test]
fn rules_without_packets_decide_about_none() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let set = support::rules(&mut dice, 40);
        let found = unreachable(&set, BUDGET);
        for it in shadowed(&set) {
            assert!(found.rules.contains(&it.rule), "seed {seed}: {it:?}\n{set}");
        }
        for _ in 0..2_000 {
            let header = Header::of(&support::frame(&mut dice));
            let rule = set.first_match(&header).rule;
            assert!(
                !found.rules.contains(&rule),
                "seed {seed}: {header:?}\n{set}"
            );
        }
    }
}

#[test]
fn changes_have_packets_that_show_them() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let old = support::rules(&mut dice, 20);
        let mut new = old.clone();
        if !new.rules.is_empty() {
            let at = dice.below(new.rules.len() as u64) as usize;
            let other = support::rules(&mut dice, 20);
            match other.rules.into_iter().next() {
                Some(rule) => new.rules[at] = rule,
                None => drop(new.rules.remove(at)),
            }
        }
        let found = changes(&old, &new, BUDGET);
        assert!(!found.is_undecided);
        for change in &found.changes {
            let header = Header::Ip(change.example);
            let rules = (old.first_match(&header).rule, new.first_match(&header).rule);
            assert_eq!(rules, (change.old, change.new));
            assert_ne!(old.action(change.old), new.action(change.new));
        }
        for _ in 0..1_000 {
            let header = Header::of(&support::frame(&mut dice));
            let Header::Ip(_) = header else { continue };
            let (was, is) = (old.first_match(&header).rule, new.first_match(&header).rule);
            let is_listed = found.changes.iter().any(|it| (it.old, it.new) == (was, is));
            assert_eq!(is_listed, old.action(was) != new.action(is), "seed {seed}");
        }
        assert_eq!(changes(&old, &old, BUDGET).changes, []);
    }
}
