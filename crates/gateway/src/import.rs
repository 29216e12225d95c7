//! Rules of other packet filters: what iptables and nftables print.
//!
//! A chain and the chains that it jumps to become one list of rules: what a jump asks for is
//! intersected with what the rules of its target ask for, and packets that return from a chain
//! are taken out of what the rules behind ask for. Rules that ask for more than addresses,
//! protocols and ports are listed with the reason, and left out, unless [`Assumptions`] decide
//! what they ask for.

mod assumptions;
mod chains;
mod conditions;
mod iptables;
mod nftables;
mod values;

use std::fmt;

use crate::rules::RuleSet;

pub use assumptions::{Assumptions, ConnectionState};
pub use iptables::{Variant, iptables_save};
pub use nftables::nft_json;

/// Result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The chain that was imported.
    pub chain: String,
    /// The rules.
    pub set: RuleSet,
    /// Rules that are left out, that do less than before, and that never match here.
    pub remarks: Vec<Remark>,
    /// True if rules with ports are those of nftables in the kernel, also by iptables-nft: it
    /// reads ports of later fragments out of their data, here such packets have no ports.
    pub reads_ports_of_fragments: bool,
}

/// True if a rule matches ports.
fn has_ports(set: &RuleSet) -> bool {
    let mut rules = set.rules.iter();
    rules.any(|rule| {
        let ports = [&rule.source_ports, &rule.destination_ports];
        ports.iter().any(|ports| !ports.ranges.is_empty()) && !rule.protocols.have_types()
    })
}

/// A remark about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Place of the rule: its line, or its handle.
    pub place: String,
    /// The rule.
    pub rule: String,
    /// Reason why it is left out, or the effect that it loses.
    pub reason: String,
    /// Its fate.
    pub fate: Fate,
}

/// Fate of a rule with a [`Remark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It cannot be expressed and is left out: verdicts may differ.
    LeftOut,
    /// Its verdict is kept, but it does less.
    Kept,
    /// It is left out and decides about no packet: it gives no verdict, or never matches under
    /// the assumptions.
    WithoutEffect,
}

/// Reason why nothing can be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// The file has another form: the place, and what was expected.
    Form(String, String),
    /// There is no such chain, but these.
    NoChain(String, Vec<String>),
    /// Chains jump to each other in a circle: the first and the last are the same.
    Circle(Vec<String>),
    /// Jumps that lead to this chain go through more chains than so many, those of the base chain
    /// and of this one among them.
    Depth(String, usize),
    /// There are more rules than a set holds.
    TooMany,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Form(place, expected) => write!(f, "{place}: expected {expected}"),
            ImportError::NoChain(name, known) if known.is_empty() => {
                write!(
                    f,
                    "no base chain {name}: the file has no base chain of type filter"
                )
            }
            ImportError::NoChain(name, known) => {
                write!(f, "no base chain {name}; there are {}", known.join(", "))
            }
            ImportError::Circle(chains) => match &chains[..] {
                [chain, _] => write!(f, "chain {chain} jumps to itself"),
                chains => write!(
                    f,
                    "the jumps of chains are circular: {}",
                    chains.join(" → ")
                ),
            },
            ImportError::Depth(chain, most) => {
                write!(
                    f,
                    "chain {chain}: jumps lead through more than {most} chains"
                )
            }
            ImportError::TooMany => write!(
                f,
                "the chain becomes more than {} rules, which a set has at most",
                crate::compile::MOST_RULES
            ),
        }
    }
}

impl std::error::Error for ImportError {}
