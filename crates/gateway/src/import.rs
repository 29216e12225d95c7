//! Rules of other packet filters: what iptables and nftables print.
//!
//! A chain and the chains that it jumps to become one list of rules: what a jump asks for is
//! combined with what the rules of its target ask for. Rules that ask for more than addresses,
//! protocols and ports are listed with the reason, and left out.

mod combine;
mod iptables;
mod nftables;

use std::fmt;

use crate::rules::RuleSet;

pub use iptables::iptables_save;
pub use nftables::nft_json;

/// What an import found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The chain that was imported.
    pub chain: String,
    /// The rules.
    pub set: RuleSet,
    /// Rules that are left out, and those that do less than before.
    pub remarks: Vec<Remark>,
}

/// A remark about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Where the rule is: its line, or its handle.
    pub place: String,
    /// The rule.
    pub rule: String,
    /// Why it is left out, or what it does not do any more.
    pub reason: String,
    /// It is left out.
    pub is_left_out: bool,
}

/// Why nothing can be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// The file has another form: the place, and what was expected.
    Form(String, String),
    /// There is no such chain, but these.
    NoChain(String, Vec<String>),
    /// Chains jump to each other in a circle, or more than 16 deep, from this one.
    Depth(String),
    /// There are more rules than a set holds.
    TooMany,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Form(place, expected) => write!(f, "{place}: expected {expected}"),
            ImportError::NoChain(name, known) => {
                write!(f, "no base chain {name}; there are {}", known.join(", "))
            }
            ImportError::Depth(chain) => {
                write!(
                    f,
                    "chain {chain}: jumps go more than {MOST_DEPTH} chains deep"
                )
            }
            ImportError::TooMany => write!(f, "more than {} rules", crate::compile::MOST_RULES),
        }
    }
}

impl std::error::Error for ImportError {}

/// Most chains in each other.
const MOST_DEPTH: usize = 16;

/// What a rule of a chain does with the packets that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Verdict(crate::rules::Action),
    Jump(String),
    Goto(String),
    Return,
}

/// A rule of a chain: what it asks for (its action counts for nothing), and what it does; or why
/// it cannot be expressed.
#[derive(Clone, Debug)]
struct ChainRule {
    place: String,
    text: String,
    parsed: Result<(crate::rules::Rule, Target), String>,
    /// What it does beside that, which is lost.
    lost: Vec<String>,
}

/// Appends the rules of a chain under a condition.
fn flatten<'c>(
    chain: &str,
    condition: &crate::rules::Rule,
    rules_of: &dyn Fn(&str) -> Option<&'c [ChainRule]>,
    depth: usize,
    found: &mut Imported,
) -> Result<(), ImportError> {
    if depth > MOST_DEPTH {
        return Err(ImportError::Depth(chain.to_owned()));
    }
    let Some(rules) = rules_of(chain) else {
        return Ok(());
    };
    for rule in rules {
        let mut remark = |reason: String, is_left_out| {
            let remark = Remark {
                place: rule.place.clone(),
                rule: rule.text.clone(),
                reason,
                is_left_out,
            };
            if !found.remarks.contains(&remark) {
                found.remarks.push(remark);
            }
        };
        let (own, target) = match &rule.parsed {
            Ok(parsed) => parsed,
            Err(reason) => {
                remark(reason.clone(), true);
                continue;
            }
        };
        for lost in &rule.lost {
            remark(lost.clone(), false);
        }
        // An empty combination matches nothing.
        let Some(mut both) = combine::combine(condition, own) else {
            continue;
        };
        both.comment.clone_from(&own.comment);
        match target {
            Target::Verdict(action) => {
                both.action = action.clone();
                found.set.rules.push(both);
                if found.set.rules.len() > crate::compile::MOST_RULES {
                    return Err(ImportError::TooMany);
                }
            }
            Target::Jump(name) => flatten(name, &both, rules_of, depth + 1, found)?,
            Target::Goto(_) => remark("goto leaves the chain behind it".to_owned(), true),
            Target::Return if combine::is_any(own) => return Ok(()),
            Target::Return => remark("return with a condition".to_owned(), true),
        }
    }
    Ok(())
}
