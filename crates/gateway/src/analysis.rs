//! Rules that decide about no packet, and what changes from one set to another.

use crate::header::Packet;
use crate::rules::RuleSet;
use crate::space::{Budget, Kind, Region, Undecided};

/// Steps that [`unreachable()`] takes for one rule and [`changes`] for two sets.
pub const BUDGET: u64 = 20_000_000;

/// A rule that another one before it makes superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// Its number, from 1.
    pub rule: u32,
    /// The number of the first rule that matches whatever it matches.
    pub by: u32,
}

/// Whether rules together match whatever a later one matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreachable {
    /// Rules that decide about no packet, by number, shadowed ones included.
    pub rules: Vec<u32>,
    /// Rules for which that was not decided within the budget.
    pub undecided: Vec<u32>,
}

/// The packets of each kind that each rule matches.
struct Regions(Vec<[Option<Region>; 6]>);

impl Regions {
    fn of(set: &RuleSet) -> Regions {
        let rules = set.rules.iter();
        Regions(
            rules
                .map(|rule| Kind::ALL.map(|kind| kind.of_rule(rule)))
                .collect(),
        )
    }
}

/// Rules that a single rule before them makes superfluous. Takes time proportional to the
/// square of the number of rules at worst.
pub fn shadowed(set: &RuleSet) -> Vec<Shadowed> {
    let regions = Regions::of(set);
    let mut found = Vec::new();
    for (later, own) in regions.0.iter().enumerate() {
        let covers = |earlier: &&[Option<Region>; 6]| {
            let mut kinds = own.iter().zip(earlier.iter());
            kinds.all(|(own, earlier)| match (own, earlier) {
                (None, _) => true,
                (Some(own), Some(earlier)) => own.is_inside(earlier),
                (Some(_), None) => false,
            })
        };
        if let Some(by) = regions.0[..later].iter().position(|it| covers(&it)) {
            found.push(Shadowed {
                rule: later as u32 + 1,
                by: by as u32 + 1,
            });
        }
    }
    found
}

/// Rules that decide about no packet, because those before match whatever they match. `budget`
/// is the number of comparisons for all rules together.
pub fn unreachable(set: &RuleSet, budget: u64) -> Unreachable {
    let regions = Regions::of(set);
    let mut budget = Budget(budget);
    let mut found = Unreachable::default();
    for (later, own) in regions.0.iter().enumerate() {
        let number = later as u32 + 1;
        match is_reached(own, &regions.0[..later], &mut budget) {
            Ok(true) => {}
            Ok(false) => found.rules.push(number),
            Err(Undecided) => found.undecided.push(number),
        }
    }
    found
}

fn is_reached(
    own: &[Option<Region>; 6],
    before: &[[Option<Region>; 6]],
    budget: &mut Budget,
) -> Result<bool, Undecided> {
    for (kind, own) in own.iter().enumerate() {
        let Some(own) = own else { continue };
        let others: Vec<&Region> = before.iter().filter_map(|it| it[kind].as_ref()).collect();
        if own.clone().outside(&others, budget)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
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
pub fn changes(old: &RuleSet, new: &RuleSet, budget: u64) -> Changes {
    let (old_regions, new_regions) = (Regions::of(old), Regions::of(new));
    let mut found = Changes::default();
    let mut budget = Budget(budget);
    // The default comes last.
    let order = |count: usize| (1..=count as u32).chain([0]);
    for old_rule in order(old.rules.len()) {
        for new_rule in order(new.rules.len()) {
            if old.action(old_rule) == new.action(new_rule) {
                continue;
            }
            let pair = [(old_rule, &old_regions), (new_rule, &new_regions)];
            match example(pair, &mut budget) {
                Ok(Some(example)) => found.changes.push(Change {
                    old: old_rule,
                    new: new_rule,
                    example,
                }),
                Ok(None) => {}
                Err(Undecided) => {
                    found.is_undecided = true;
                    return found;
                }
            }
        }
    }
    found
}

/// A packet for which these are the first rules that match.
fn example(pair: [(u32, &Regions); 2], budget: &mut Budget) -> Result<Option<Packet>, Undecided> {
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        let mut region = Some(kind.all());
        let mut others = Vec::new();
        for (rule, regions) in pair {
            let before = match rule.checked_sub(1) {
                None => &regions.0[..],
                Some(own) => {
                    let own = own as usize;
                    let its = regions.0[own][at].as_ref();
                    region = region.zip(its).and_then(|(a, b)| a.intersection(b));
                    &regions.0[..own]
                }
            };
            others.extend(before.iter().filter_map(|it| it[at].as_ref()));
        }
        if budget.0 == 0 {
            return Err(Undecided);
        }
        budget.0 -= 1;
        if let Some(region) = region
            && let Some(values) = region.outside(&others, budget)?
        {
            return Ok(Some(kind.packet(values)));
        }
    }
    Ok(None)
}
