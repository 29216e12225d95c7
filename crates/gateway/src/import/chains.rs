//! From chains that jump to each other to one list of rules.

use super::conditions::{intersect_all, subtract_all};
use super::{Fate, ImportError, Imported, Remark};
use crate::rules::{Action, Addresses, Prefix, Rule};

/// Most chains in each other.
pub(super) const MOST_DEPTH: usize = 16;

/// Action of a chain's rule on the packets that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Verdict(Action),
    Jump(String),
    Goto(String),
    Return,
}

/// Condition and action of a chain's rule.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    /// A union of products.
    pub(super) conditions: Vec<Rule>,
    pub(super) target: Target,
}

/// A rule of a chain.
#[derive(Clone, Debug)]
pub(super) struct ChainRule {
    pub(super) place: String,
    pub(super) text: String,
    pub(super) comment: String,
    /// Packets are matched by at most one of them.
    pub(super) branches: Vec<Branch>,
    pub(super) notes: Vec<(Fate, String)>,
}

impl ChainRule {
    /// A remark about the rule.
    fn remark(&self, fate: Fate, reason: &str, found: &mut Imported) {
        let remark = Remark {
            place: self.place.clone(),
            rule: self.text.clone(),
            reason: reason.to_owned(),
            fate,
        };
        if !found.remarks.contains(&remark) {
            found.remarks.push(remark);
        }
    }
}

/// Appends the rules of a chain for packets that meet one of some conditions, which are disjoint.
pub(super) fn flatten<'c>(
    chain: &str,
    conditions: &[Rule],
    rules_of: &dyn Fn(&str) -> Option<&'c [ChainRule]>,
    depth: usize,
    found: &mut Imported,
) -> Result<(), ImportError> {
    if depth > MOST_DEPTH {
        return Err(ImportError::Depth(chain.to_owned()));
    }
    // Packets that still are in the chain, or have a verdict.
    let mut open = conditions.to_vec();
    for rule in rules_of(chain).unwrap_or_default() {
        for (fate, reason) in &rule.notes {
            rule.remark(*fate, reason, found);
        }
        for branch in &rule.branches {
            let met = intersect_all(&open, &branch.conditions);
            if met.is_empty() {
                continue;
            }
            match &branch.target {
                Target::Verdict(action) => {
                    found
                        .set
                        .rules
                        .extend(met.into_iter().map(|condition| Rule {
                            action: action.clone(),
                            comment: rule.comment.clone(),
                            ..condition
                        }));
                    if found.set.rules.len() > crate::compile::MOST_RULES {
                        return Err(ImportError::TooMany);
                    }
                    if !is_without_conditions(&branch.conditions) {
                        continue;
                    }
                }
                Target::Jump(name) | Target::Goto(name) => {
                    if rules_of(name).is_none() {
                        let reason = format!("the target {name}");
                        rule.remark(Fate::LeftOut, &reason, found);
                        continue;
                    }
                    flatten(name, &met, rules_of, depth + 1, found)?;
                    if matches!(branch.target, Target::Jump(_)) {
                        continue;
                    }
                }
                Target::Return => {}
            }
            // Rules behind concern the others.
            match subtract_all(&open, &branch.conditions) {
                Some(left) => open = left,
                None => rule.remark(
                    Fate::LeftOut,
                    "the packets that it does not match need too many rules",
                    found,
                ),
            }
        }
        if open.is_empty() {
            break;
        }
    }
    Ok(())
}

/// True if it matches everything, or all of a family.
fn is_without_conditions(conditions: &[Rule]) -> bool {
    conditions.iter().any(|rule| {
        let is_all = |addresses: &Addresses| {
            let is_whole = |prefix: &Prefix| matches!(prefix, Prefix::V4(_, 0) | Prefix::V6(_, 0));
            addresses.is_any() || !addresses.is_negated && addresses.prefixes.iter().any(is_whole)
        };
        rule.protocols.is_any()
            && is_all(&rule.source)
            && is_all(&rule.destination)
            && rule.source_ports.is_any()
            && rule.destination_ports.is_any()
    })
}
