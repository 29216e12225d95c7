//! Rules that decide about no packet, and what changes from one set to another.
//!
//! Whether a packet is left of a product is found by lookups in the compiled set: the rule that
//! decides about the least packet is either the wanted one, or one before it, which is subtracted.
//! So only rules that do decide about some packet of the product are compared with it. All work
//! counts against the budget.

use crate::compile::Compiled;
use crate::header::{Header, Packet};
use crate::overlap::Overlaps;
use crate::rules::RuleSet;
use crate::space::{Budget, Kind, Region, Regions, Undecided};

/// Steps that [`unreachable()`] takes for a set and [`changes`] for two sets.
pub const BUDGET: u64 = 20_000_000;

/// Steps that a lookup, and the subtraction of a small product, count as.
const LOOKUP_STEPS: u64 = 32;

/// A rule that another one before it makes superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// Its number, from 1.
    pub rule: u32,
    /// The number of the first rule that matches whatever it matches.
    pub by: u32,
}

/// Rules that decide about no packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreachable {
    /// Rules that decide about no packet, by number, shadowed ones included.
    pub rules: Vec<u32>,
    /// Those that a single rule before them makes superfluous.
    pub shadowed: Vec<Shadowed>,
    /// Rules for which that was not decided within the budget.
    pub undecided: Vec<u32>,
    /// Steps that were taken, at most the budget.
    pub steps: u64,
}

/// Rules that decide about no packet, because those before match whatever they match. `budget`
/// is the number of steps for all rules together.
pub fn unreachable(set: &RuleSet, compiled: &Compiled, budget: u64) -> Unreachable {
    let regions = Regions::of(set);
    let mut budget = Budget::new(budget);
    let mut found = Unreachable::default();
    for rule in 1..=set.rules.len() as u32 {
        match superfluous(rule, &regions, compiled, &mut budget) {
            Ok(Reach::Some) => {}
            Ok(Reach::Shadowed(by)) => {
                found.rules.push(rule);
                found.shadowed.push(Shadowed { rule, by });
            }
            Ok(Reach::None) => found.rules.push(rule),
            Err(Undecided) => found.undecided.push(rule),
        }
    }
    found.steps = budget.spent();
    found
}

/// The packets that a rule decides about.
enum Reach {
    Some,
    /// None: this rule matches all that it matches.
    Shadowed(u32),
    None,
}

fn superfluous(
    rule: u32,
    regions: &Regions,
    compiled: &Compiled,
    budget: &mut Budget,
) -> Result<Reach, Undecided> {
    let own = regions.of_rule(rule);
    let mut first = None;
    for (kind, region) in Kind::ALL.into_iter().zip(own) {
        let Some(region) = region else { continue };
        budget.spend(LOOKUP_STEPS)?;
        let packet = kind.packet(region.first());
        if decides(compiled, &packet) == rule {
            return Ok(Reach::Some);
        }
        first.get_or_insert(packet);
    }
    // A rule of mixed families matches nothing, which is inside of whatever rule 1 matches.
    let Some(first) = first else {
        return Ok(match rule {
            1 => Reach::None,
            _ => Reach::Shadowed(1),
        });
    };
    budget.spend(u64::from(rule) / 512)?;
    for by in compiled.rules_of(&first).take_while(|by| *by < rule) {
        let mut is_inside = true;
        for (own, by) in own.into_iter().zip(regions.of_rule(by)) {
            is_inside &= match (own, by) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(by)) => {
                    budget.compare(own, by)?;
                    own.is_inside(by)
                }
            };
        }
        if is_inside {
            return Ok(Reach::Shadowed(by));
        }
    }
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        let Some(own) = own[at] else { continue };
        let sets = [(rule, regions, compiled)];
        if reached(own.clone(), kind, at, &sets, budget)?.is_some() {
            return Ok(Reach::Some);
        }
    }
    Ok(Reach::None)
}

fn decides(compiled: &Compiled, packet: &Packet) -> u32 {
    compiled.table().lookup(&Header::Ip(*packet)).rule
}

/// A packet of the product about which in each set the rule decides. The rules match all of the
/// product.
fn reached(
    region: Region,
    kind: Kind,
    at: usize,
    sets: &[(u32, &Regions, &Compiled)],
    budget: &mut Budget,
) -> Result<Option<Packet>, Undecided> {
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        let packet = kind.packet(region.first());
        let mut other = None;
        for &(rule, regions, compiled) in sets {
            budget.spend(LOOKUP_STEPS)?;
            let decides = decides(compiled, &packet);
            if decides != rule {
                // A rule before, which matches the packet.
                other = regions.of_rule(decides)[at];
                break;
            }
        }
        let Some(other) = other else {
            return Ok(Some(packet));
        };
        budget.compare(&region, other)?;
        region.subtract(other, &mut open);
    }
    Ok(None)
}

/// Traffic that two sets treat differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The rule of the old set, 0 for the default.
    pub old: u32,
    /// The rule of the new set.
    pub new: u32,
    /// A packet that shows it.
    pub example: Packet,
}

/// Changes from one set to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// A change for each pair of an old and a new rule with different actions.
    pub changes: Vec<Change>,
    /// The budget was used up: there may be more.
    pub is_undecided: bool,
}

/// The traffic whose action changes from one set to another: for each pair of rules one packet.
pub fn changes(old: (&RuleSet, &Compiled), new: (&RuleSet, &Compiled), budget: u64) -> Changes {
    let regions = [Regions::of(old.0), Regions::of(new.0)];
    let mut found = Changes::default();
    let mut budget = Budget::new(budget);
    let result = find_changes(old, new, &regions, &mut budget, &mut found.changes);
    found.is_undecided = result.is_err();
    found
}

fn find_changes(
    old: (&RuleSet, &Compiled),
    new: (&RuleSet, &Compiled),
    regions: &[Regions; 2],
    budget: &mut Budget,
    found: &mut Vec<Change>,
) -> Result<(), Undecided> {
    // Rules before the first difference decide about the same packets in both sets.
    let pairs = old.0.rules.iter().zip(&new.0.rules);
    let first = pairs.take_while(|(old, new)| old == new).count() as u32 + 1;
    // The default comes last.
    let order = |set: &RuleSet| (first..=set.rules.len() as u32).chain([0]);
    let overlaps = Overlaps::of(&regions[1], first..=new.0.rules.len() as u32);
    for old_rule in order(old.0) {
        budget.spend(LOOKUP_STEPS)?;
        let mut candidates = Vec::new();
        for (kind, region) in regions[0].of_rule(old_rule).into_iter().enumerate() {
            if let Some(region) = region {
                overlaps.add(region, kind, &mut candidates);
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates.push(0);
        for new_rule in candidates {
            budget.spend(1)?;
            if old.0.action(old_rule) == new.0.action(new_rule) {
                continue;
            }
            let sets = [
                (old_rule, &regions[0], old.1),
                (new_rule, &regions[1], new.1),
            ];
            if let Some(example) = example(&sets, budget)? {
                found.push(Change {
                    old: old_rule,
                    new: new_rule,
                    example,
                });
            }
        }
    }
    Ok(())
}

/// A packet about which in each set the rule decides.
fn example(
    sets: &[(u32, &Regions, &Compiled); 2],
    budget: &mut Budget,
) -> Result<Option<Packet>, Undecided> {
    budget.spend(1)?;
    let [old, new] = sets.map(|(rule, regions, _)| regions.of_rule(rule));
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        let (Some(old), Some(new)) = (old[at], new[at]) else {
            continue;
        };
        budget.compare(old, new)?;
        if !old.intersects(new) {
            continue;
        }
        let Some(both) = old.intersection(new) else {
            continue;
        };
        if let Some(packet) = reached(both, kind, at, sets, budget)? {
            return Ok(Some(packet));
        }
    }
    Ok(None)
}
