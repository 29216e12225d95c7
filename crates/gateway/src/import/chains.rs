//! From chains that jump to each other to one list of rules.

use super::conditions::{intersect_all, subtract_all};
use super::{Fate, ImportError, Imported, Remark};
use crate::rules::{Action, Addresses, Prefix, Rule, comment_line};

/// Most chains in each other, the base chain among them, of nftables (`NFT_JUMP_STACK_SIZE`).
pub(super) const MOST_OF_NFTABLES: usize = 16;

/// Most chains in each other that are read of iptables-legacy, which has no limit.
pub(super) const MOST_OF_LEGACY: usize = 256;

/// Action of a chain's rule on the packets that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Verdict(Action),
    /// Dropped by a match, whatever the rule's target is.
    Hotdrop,
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

/// The rules of a chain by its name.
pub(super) type RulesOf<'f, 'c> = &'f dyn Fn(&str) -> Option<&'c [ChainRule]>;

/// Appends the rules of a base chain for all packets of `all`, with at most so many chains in each
/// other.
pub(super) fn flatten<'c>(
    chain: &str,
    all: &Rule,
    rules_of: RulesOf<'_, 'c>,
    most: usize,
    found: &mut Imported,
) -> Result<(), ImportError> {
    let mut flattener = Flattener {
        rules_of,
        most,
        found,
        dropped: Vec::new(),
        open: Vec::new(),
    };
    flattener.chain(chain, std::slice::from_ref(all))
}

struct Flattener<'f, 'c> {
    rules_of: RulesOf<'f, 'c>,
    /// Most chains in each other.
    most: usize,
    found: &'f mut Imported,
    /// The chain that is read, and those that lead to it, the base chain first.
    open: Vec<String>,
    /// Packets that matches dropped, of those that do not depend on addresses.
    dropped: Vec<Rule>,
}

impl<'c> Flattener<'_, 'c> {
    /// Appends the rules of a chain for packets that meet one of some conditions, which are
    /// disjoint.
    fn chain(&mut self, chain: &str, conditions: &[Rule]) -> Result<(), ImportError> {
        if let Some(start) = self.open.iter().position(|open| open == chain) {
            let circle = self.open[start..].iter().map(String::as_str);
            let circle = circle.chain([chain]).map(str::to_owned);
            return Err(ImportError::Circle(circle.collect()));
        }
        if self.open.len() == self.most {
            return Err(ImportError::Depth(chain.to_owned(), self.most));
        }
        self.open.push(chain.to_owned());
        // Packets that still are in the chain, or have a verdict.
        let mut open = conditions.to_vec();
        for rule in (self.rules_of)(chain).unwrap_or_default() {
            for (fate, reason) in &rule.notes {
                rule.remark(*fate, reason, self.found);
            }
            for branch in &rule.branches {
                let met = intersect_all(&open, &branch.conditions);
                if met.is_empty() {
                    continue;
                }
                match &branch.target {
                    Target::Hotdrop => {
                        self.hotdrop(met)?;
                        continue;
                    }
                    Target::Verdict(action) => {
                        self.append(met, action, &rule.comment)?;
                        if !is_without_conditions(&branch.conditions) {
                            continue;
                        }
                    }
                    Target::Jump(name) | Target::Goto(name) => {
                        if (self.rules_of)(name).is_none() {
                            let reason = format!("the target {name}");
                            rule.remark(Fate::LeftOut, &reason, self.found);
                            continue;
                        }
                        self.chain(name, &met)?;
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
                        self.found,
                    ),
                }
            }
            if open.is_empty() {
                break;
            }
        }
        self.open.pop();
        Ok(())
    }

    /// Appends rules that drop what a match drops. Most rules ask the same matches, so what one
    /// dropped for all addresses is left out behind.
    fn hotdrop(&mut self, met: Vec<Rule>) -> Result<(), ImportError> {
        let met = subtract_all(&met, &self.dropped).unwrap_or(met);
        let of_all = |rule: &&Rule| is_all(&rule.source) && is_all(&rule.destination);
        self.dropped.extend(met.iter().filter(of_all).cloned());
        self.append(met, &Action::Drop, "header cut off")
    }

    fn append(
        &mut self,
        conditions: Vec<Rule>,
        action: &Action,
        comment: &str,
    ) -> Result<(), ImportError> {
        let rules = conditions.into_iter().map(|condition| Rule {
            action: action.clone(),
            comment: comment_line(comment),
            ..condition
        });
        self.found.set.rules.extend(rules);
        match self.found.set.rules.len() > crate::compile::MOST_RULES {
            true => Err(ImportError::TooMany),
            false => Ok(()),
        }
    }
}

/// True for all addresses, or all of a family.
fn is_all(addresses: &Addresses) -> bool {
    let is_whole = |prefix: &Prefix| matches!(prefix, Prefix::V4(_, 0) | Prefix::V6(_, 0));
    addresses.is_any() || !addresses.is_negated && addresses.prefixes.iter().any(is_whole)
}

/// True if it matches everything, or all of a family.
fn is_without_conditions(conditions: &[Rule]) -> bool {
    conditions.iter().any(|rule| {
        rule.protocols.is_any()
            && rule.headers.is_any()
            && is_all(&rule.source)
            && is_all(&rule.destination)
            && rule.source_ports.is_any()
            && rule.destination_ports.is_any()
    })
}
