//! The output of `nft -j list ruleset`.

mod condition;
mod rule;

use std::collections::BTreeMap;

use serde_json::Value;

use super::chains::{ChainRule, MOST_OF_NFTABLES, flatten};
use super::{Assumptions, Fate, ImportError, Imported, Remark, has_ports};
use crate::rules::{Action, Prefix, Rule, RuleSet, comment_line};

/// A table: its family and name.
type TableName = (String, String);

/// Imports a base chain of type filter, by its name or as `FAMILY TABLE CHAIN`; without a name
/// the first one at the hook input that has rules, otherwise at forward, otherwise the first.
/// Packets of the other family pass.
///
/// # Errors
/// For text of another form, and if there is no such chain.
pub fn nft_json(
    text: &str,
    chain: Option<&str>,
    assumptions: &Assumptions,
) -> Result<Imported, ImportError> {
    let form = |place: String, expected: &str| ImportError::Form(place, expected.to_owned());
    let whole: Value = serde_json::from_str(text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        form(place, "JSON, as `nft -j list ruleset` prints it")
    })?;
    let objects = whole["nftables"].as_array();
    let objects = objects.ok_or_else(|| form("the document".into(), "the key \"nftables\""))?;
    let ruleset = Ruleset::read(objects, assumptions)?;
    let base = ruleset.base(chain)?;
    let is_named = chain.is_some();
    let (table, chain) = base;
    let policy = match chain["policy"].as_str() {
        Some("drop") => Action::Drop,
        _ => Action::Pass,
    };
    let mut all = Rule::new(policy);
    match &*table.0 {
        "ip" => all.destination.prefixes.push(Prefix::V4(0, 0)),
        "ip6" => all.destination.prefixes.push(Prefix::V6(0, 0)),
        "inet" => {}
        family => {
            let place = format!("chain {}", full_name(base));
            let expected = format!("a table of ip, ip6 or inet, not {family}");
            return Err(form(place, &expected));
        }
    }
    let name = word(&chain["name"]);
    let mut found = Imported {
        chain: full_name(base),
        set: RuleSet::default(),
        remarks: Vec::new(),
        reads_ports_of_fragments: false,
    };
    let rules_of = |name: &str| {
        let rules = ruleset.chains.get(&(table.clone(), name.to_owned()));
        rules.map(Vec::as_slice)
    };
    flatten(&name, &all, &rules_of, MOST_OF_NFTABLES, &mut found)?;
    // Who names a chain means that one.
    if !is_named {
        found.remarks.extend(ruleset.beside(base));
    }
    all.comment = comment_line(&format!("policy of {name}"));
    found.set.rules.push(all);
    found.reads_ports_of_fragments = has_ports(&found.set);
    Ok(found)
}

/// A base chain: its table and its description.
type Base<'v> = (TableName, &'v Value);

fn full_name(base: &Base<'_>) -> String {
    let ((family, table), chain) = base;
    format!("{family} {table} {}", word(&chain["name"]))
}

/// Chains and their rules.
struct Ruleset<'v> {
    bases: Vec<Base<'v>>,
    chains: BTreeMap<(TableName, String), Vec<ChainRule>>,
}

impl<'v> Ruleset<'v> {
    fn read(objects: &'v [Value], assumptions: &Assumptions) -> Result<Ruleset<'v>, ImportError> {
        let table_of = |object: &Value| (word(&object["family"]), word(&object["table"]));
        let mut ruleset = Ruleset {
            bases: Vec::new(),
            chains: BTreeMap::new(),
        };
        let mut sets: BTreeMap<(TableName, String), &Value> = BTreeMap::new();
        for object in objects {
            if let Some(set) = object.get("set").or_else(|| object.get("map")) {
                sets.insert((table_of(set), word(&set["name"])), set);
            }
            if let Some(chain) = object.get("chain") {
                let key = (table_of(chain), word(&chain["name"]));
                ruleset.chains.entry(key).or_default();
                if chain["type"] == "filter" {
                    ruleset.bases.push((table_of(chain), chain));
                }
            }
        }
        for object in objects {
            let Some(rule) = object.get("rule") else {
                continue;
            };
            let table = table_of(rule);
            let place = format!("handle {}", rule["handle"]);
            let Some(statements) = rule["expr"].as_array() else {
                let place = format!("rule with {place}");
                return Err(ImportError::Form(place, "the key \"expr\"".to_owned()));
            };
            let context = condition::Context {
                set: &|name| sets.get(&(table.clone(), name.to_owned())).copied(),
                assumptions,
            };
            let (branches, notes) = rule::read(statements, &context);
            let key = (table.clone(), word(&rule["chain"]));
            ruleset.chains.entry(key).or_default().push(ChainRule {
                place,
                text: rule["expr"].to_string(),
                comment: word(&rule["comment"]),
                branches,
                notes,
            });
        }
        Ok(ruleset)
    }

    /// Remarks on base chains whose drops count as well: those at the same hook, and at the hooks
    /// before it.
    fn beside(&self, imported: &Base<'v>) -> impl Iterator<Item = Remark> {
        let hook = &imported.1["hook"];
        let sees_same = |family: &str| {
            let families = [family, &imported.0.0];
            family == imported.0.0 || families.iter().any(|it| matches!(*it, "inet" | "netdev"))
        };
        let decides = move |base: &&Base<'_>| {
            let is_before = base.1["hook"] == "prerouting" || base.1["hook"] == "ingress";
            let is_there = base.1["hook"] == *hook || is_before;
            let chain = self.chains.get(&(base.0.clone(), word(&base.1["name"])));
            let has_rules = chain.is_some_and(|rules| !rules.is_empty());
            let is_other = !std::ptr::eq(*base, imported) && sees_same(&base.0.0);
            is_other && is_there && (has_rules || base.1["policy"] == "drop")
        };
        self.bases.iter().filter(decides).map(|base| Remark {
            place: format!("chain {}", full_name(base)),
            rule: format!(
                "hook {} policy {}",
                word(&base.1["hook"]),
                word(&base.1["policy"])
            ),
            reason: "another chain that packets pass, which is not imported".to_owned(),
            fate: Fate::LeftOut,
        })
    }

    /// The chain that is imported.
    fn base(&self, chain: Option<&str>) -> Result<&Base<'v>, ImportError> {
        let has_rules = |base: &&Base<'_>| {
            let chain = self.chains.get(&(base.0.clone(), word(&base.1["name"])));
            chain.is_some_and(|rules| !rules.is_empty())
        };
        let at_hook = |hook: &str| {
            let mut at = self.bases.iter().filter(|base| base.1["hook"] == hook);
            at.find(has_rules)
        };
        let found = match chain {
            Some(name) => {
                (self.bases.iter()).find(|base| base.1["name"] == name || full_name(base) == name)
            }
            None => at_hook("input")
                .or_else(|| at_hook("forward"))
                .or(self.bases.first()),
        };
        found.ok_or_else(|| {
            let known = self.bases.iter().map(full_name).collect();
            ImportError::NoChain(chain.unwrap_or("of type filter").to_owned(), known)
        })
    }
}

/// The text of a JSON value, empty for other values.
fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
