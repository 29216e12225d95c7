//! Shadowed and unreachable rules and differences of sets: against the definition on small
//! spaces, and on examples.

use crate::support;
use crate::support::Dice;
use beebox_gateway::analysis::{self, BUDGET, Changes, Unreachable};
use beebox_gateway::{Compiled, Header, RuleSet};

fn set(text: &str) -> RuleSet {
    RuleSet::parse(text).unwrap()
}

fn unreachable(set: &RuleSet, budget: u64) -> Unreachable {
    let found = analysis::unreachable(set, &Compiled::new(set).unwrap(), budget);
    assert!(found.steps <= budget);
    found
}

fn changes(old: &RuleSet, new: &RuleSet, budget: u64) -> Changes {
    let [with_old, with_new] = [old, new].map(|set| Compiled::new(set).unwrap());
    analysis::changes((old, &with_old), (new, &with_new), budget)
}

/// The definition of a shadowed rule for one packet: whatever matches it matches the other.
fn is_shadowed_for(set: &RuleSet, it: &analysis::Shadowed, header: &Header) -> bool {
    let Header::Ip(packet) = header else {
        return true;
    };
    let rule = |number: u32| &set.rules[number as usize - 1];
    !rule(it.rule).matches(packet) || rule(it.by).matches(packet)
}

/// Rules that match distinct packets take steps in proportion to their number.
#[oracle::test]
fn steps_are_in_proportion_to_distinct_rules() {
    let mut text = String::new();
    for i in 0..20_000u32 {
        let (high, low) = (i >> 8, i & 255);
        let (port, last) = (i % 30_000, i % 30_000 * 2);
        text += &format!(
            "pass proto tcp from 10.0.{high}.{low} port {port} to 10.1.0.0/16 port {port}-{last}\n"
        );
    }
    // Rules that are all shadowed, by the last of those before.
    let shadowed = text.replace("pass", "drop");
    let set = set(&(text + &shadowed));
    let found = unreachable(&set, BUDGET);
    assert_eq!((found.rules.len(), found.shadowed.len()), (20_000, 20_000));
    assert_eq!(
        found.shadowed[0],
        analysis::Shadowed {
            rule: 20_001,
            by: 1
        }
    );
    assert!(found.undecided.is_empty());
    assert!(found.steps < 200 * 40_000, "{}", found.steps);
}

/// Rules that overlap in all fields take no more steps than the budget has.
#[oracle::test]
fn all_work_counts_against_the_budget() {
    let mut text = String::new();
    for i in 0..3_000u32 {
        let (a, b, c, d) = (i * 7 % 251, i * 11 % 241, i * 13 % 30_000, i * 17 % 30_000);
        text += &match i % 3 {
            0 => format!("pass proto tcp from 10.{a}.0.0/16 port {c}-65535\n"),
            1 => format!("drop proto tcp to 10.{b}.0.0/16 port {d}-65535\n"),
            _ => format!(
                "pass proto tcp from any port 0-{c} to any port {d}-{}\n",
                d + 5_000
            ),
        };
    }
    text += "drop proto tcp from 10.0.0.0/8 port 1-65535 to 10.0.0.0/8 port 1-65535\n";
    let set = set(&text);
    let found = unreachable(&set, 100_000);
    assert!(!found.undecided.is_empty());
    assert!(changes(&set, &RuleSet::default(), 100_000).is_undecided);
}

/// Many rules behind one that differs are compared with those of the same addresses only.
#[oracle::test]
fn changes_behind_a_difference_take_few_steps() {
    let rule = |i: u32| {
        let action = ["pass", "drop"][i as usize % 2];
        format!(
            "{action} proto tcp to 10.{}.{}.0/24 port 80\n",
            i / 256,
            i % 256
        )
    };
    let rules: String = (0..20_000).map(rule).collect();
    let old = set(&format!("pass proto udp from 192.0.2.1\n{rules}"));
    let new = set(&format!("drop proto udp from 192.0.2.1\n{rules}"));
    let found = changes(&old, &new, 20_000 * 100);
    assert!(!found.is_undecided);
    let changed = found.changes.iter().map(|change| (change.old, change.new));
    assert_eq!(changed.collect::<Vec<_>>(), [(1, 1)]);
}

#[oracle::test]
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
    let found = unreachable(&set, BUDGET);
    let shadowed: Vec<_> = found.shadowed.iter().map(|it| (it.rule, it.by)).collect();
    assert_eq!(shadowed, [(2, 1), (5, 3),]);
    // Rule 6 is reached by fragments, whose ports are unknown.
    assert_eq!(found.rules, [2, 5, 7]);
    assert!(found.undecided.is_empty());
    let found = unreachable(&set, 0);
    assert!(found.rules.is_empty());
    assert_eq!(found.undecided.first(), Some(&1));
}

#[oracle::test]
fn rules_without_packets_decide_about_none() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let set = support::rules(&mut dice, 40);
        let found = unreachable(&set, BUDGET);
        assert!(found.undecided.is_empty());
        for it in &found.shadowed {
            assert!(found.rules.contains(&it.rule), "seed {seed}: {it:?}\n{set}");
        }
        for _ in 0..2_000 {
            let header = Header::of(&support::frame(&mut dice));
            for it in &found.shadowed {
                assert!(
                    is_shadowed_for(&set, it, &header),
                    "seed {seed}: {it:?}\n{set}"
                );
            }
            let rule = set.first_match(&header).rule;
            assert!(
                !found.rules.contains(&rule),
                "seed {seed}: {header:?}\n{set}"
            );
        }
    }
}

#[oracle::test]
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
