//! The output of `iptables-save` and `ip6tables-save`: the table `filter`.

mod rule;

use std::collections::BTreeMap;

use self::rule::Dialect;
use super::chains::{ChainRule, MOST_OF_LEGACY, MOST_OF_NFTABLES, flatten};
use super::{Assumptions, Fate, ImportError, Imported, Remark, has_ports};
use crate::rules::{Action, Prefix, Rule, RuleSet, comment_line};

/// The table that is imported.
const TABLE: &str = "filter";

/// Variant of iptables that put rules into the kernel: packets whose transport header is cut off
/// fare differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// iptables-legacy: every match is the kernel's extension, which drops such packets.
    Legacy,
    /// iptables-nft: tcp and udp are expressions of nftables, which do not match such packets.
    Nft,
}

impl Variant {
    /// The variant that printed a file, if its comment has a version of iptables.
    pub fn of_save(text: &str) -> Option<Variant> {
        let mut comments = text.lines().filter(|line| line.starts_with('#'));
        let comment = comments.find(|line| line.contains("-save v"))?;
        Some(match comment.contains("(nf_tables)") {
            true => Variant::Nft,
            false => Variant::Legacy,
        })
    }
}

/// Imports a chain with a policy, as INPUT; without a name INPUT if it has rules, otherwise
/// FORWARD. Packets of the other family pass.
///
/// # Errors
/// For text of another form, and if there is no such chain.
pub fn iptables_save(
    text: &str,
    chain: Option<&str>,
    variant: Variant,
    assumptions: &Assumptions,
) -> Result<Imported, ImportError> {
    let is_v6 = is_ipv6(text);
    let dialect = Dialect {
        is_v6,
        variant,
        assumptions,
    };
    let chains = Chains::read(text, dialect)?;
    let has_rules = |name: &str| chains.rules.get(name).is_some_and(|it| !it.is_empty());
    let chain = match chain {
        Some(chain) => chain,
        None if has_rules("INPUT") || !has_rules("FORWARD") => "INPUT",
        None => "FORWARD",
    };
    let Some(policy) = chains.policies.get(chain) else {
        let known = chains.policies.into_keys().collect();
        return Err(ImportError::NoChain(chain.to_owned(), known));
    };
    let elsewhere = chains.elsewhere.into_iter();
    let elsewhere = elsewhere.filter(|(other, _)| may_pass(chain, other));
    let mut found = Imported {
        chain: chain.to_owned(),
        set: RuleSet::default(),
        remarks: elsewhere.map(|(_, remark)| remark).collect(),
        reads_ports_of_fragments: false,
    };
    let mut all = Rule::new(policy.clone());
    all.destination.prefixes.push(match is_v6 {
        true => Prefix::V6(0, 0),
        false => Prefix::V4(0, 0),
    });
    let rules_of = |name: &str| chains.rules.get(name).map(Vec::as_slice);
    let most = match variant {
        Variant::Legacy => MOST_OF_LEGACY,
        Variant::Nft => MOST_OF_NFTABLES,
    };
    flatten(chain, &all, &rules_of, most, &mut found)?;
    all.comment = comment_line(&format!("policy of {chain}"));
    found.set.rules.push(all);
    found.reads_ports_of_fragments = variant == Variant::Nft && has_ports(&found.set);
    Ok(found)
}

/// True for the output of ip6tables-save: it says so in its comment, or has IPv6 addresses.
fn is_ipv6(text: &str) -> bool {
    text.contains("ip6tables-save")
        || text.lines().any(|line| {
            let mut words = line.split_whitespace();
            let is_side = |word| matches!(word, "-s" | "-d");
            let mut address = words.by_ref().skip_while(|word| !is_side(*word)).skip(1);
            line.contains("-p ipv6-icmp") || address.next().is_some_and(|it| it.contains(':'))
        })
}

/// The chains of the table.
#[derive(Default)]
struct Chains {
    /// Those of the kernel with their policies.
    policies: BTreeMap<String, Action>,
    rules: BTreeMap<String, Vec<ChainRule>>,
    /// What drops packets in other tables, by chain.
    elsewhere: Vec<(String, Remark)>,
}

/// What drops packets in a table that is not imported: a rule, or the policy of a chain.
fn dropped_in(table: &str, place: &str, line: &str) -> Option<(String, Remark)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let declared = line.strip_prefix(':').and_then(|_| words.first());
    let declared = declared.map(|name| name.trim_start_matches(':'));
    let added = words
        .windows(2)
        .find(|pair| matches!(pair[0], "-A" | "--append"));
    let chain = declared.or(added.map(|pair| pair[1])).unwrap_or_default();
    let is_policy = line.starts_with(':') && words.get(1) == Some(&"DROP");
    let is_rule = words
        .windows(2)
        .any(|pair| matches!(pair[0], "-j" | "--jump" | "-g" | "--goto") && pair[1] == "DROP");
    (is_policy || is_rule).then(|| {
        let remark = Remark {
            place: place.to_owned(),
            rule: line.to_owned(),
            reason: format!("of table {table}, which is not imported"),
            fate: Fate::LeftOut,
        };
        (chain.to_owned(), remark)
    })
}

/// False if packets of a chain of the table filter never pass a chain of another table; those of
/// users may be reached from any chain.
fn may_pass(filter: &str, other: &str) -> bool {
    match other {
        "PREROUTING" => filter != "OUTPUT",
        "INPUT" | "FORWARD" | "OUTPUT" => filter == other || !is_built_in(filter),
        "POSTROUTING" => filter != "INPUT",
        _ => true,
    }
}

/// True for the chains of the table filter that the kernel has.
fn is_built_in(chain: &str) -> bool {
    matches!(chain, "INPUT" | "FORWARD" | "OUTPUT")
}

impl Chains {
    fn read(text: &str, dialect: Dialect<'_>) -> Result<Chains, ImportError> {
        let mut chains = Chains::default();
        let (mut table, mut is_open) = ("", false);
        for (number, line) in text.lines().enumerate() {
            let place = format!("line {}", number + 1);
            let form = |expected: &str| ImportError::Form(place.clone(), expected.to_owned());
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            } else if line == "COMMIT" {
                is_open = false;
            } else if let Some(name) = line.strip_prefix('*') {
                if is_open {
                    return Err(form(&format!("COMMIT of table {table} before")));
                }
                is_open = true;
                if name == TABLE && !chains.rules.is_empty() {
                    return Err(form(
                        "one table filter: the output of iptables-save and of ip6tables-save in files of their own",
                    ));
                }
                table = name;
            } else if table.is_empty() || !line.starts_with([':', '-', '[']) {
                return Err(form(
                    "a line of iptables-save: *TABLE, :CHAIN, -A or COMMIT",
                ));
            } else if table != TABLE {
                chains.elsewhere.extend(dropped_in(table, &place, line));
            } else if let Some(declared) = line.strip_prefix(':') {
                let mut words = declared.split_whitespace();
                let name = words.next().ok_or_else(|| form(":CHAIN POLICY"))?;
                let policy = match words.next() {
                    Some("ACCEPT") => Some(Action::Pass),
                    Some("DROP") => Some(Action::Drop),
                    Some("-") => None,
                    _ => return Err(form(":CHAIN with ACCEPT, DROP or -")),
                };
                if let Some(policy) = policy {
                    chains.policies.insert(name.to_owned(), policy);
                }
                chains.rules.entry(name.to_owned()).or_default();
            } else {
                // Counters of a rule may stand in front: [packets:bytes].
                let rule = match line.strip_prefix('[') {
                    Some(rest) => rest.split_once("] ").map_or("", |(_, rule)| rule),
                    None => line,
                };
                let words = words(rule).ok_or_else(|| form("closed quotation marks"))?;
                let [add, name, rest @ ..] = &words[..] else {
                    return Err(form("-A CHAIN"));
                };
                let chain = chains.rules.get_mut(name);
                match (&**add, chain) {
                    ("-A", Some(chain)) => {
                        chain.push(rule::read(rest, dialect, place, rule));
                    }
                    ("-A", None) => {
                        return Err(form(&format!("the line :{name} before its rules")));
                    }
                    _ => return Err(form("-A CHAIN")),
                }
            }
        }
        if is_open {
            let end = format!("the file ends in table {table}");
            return Err(ImportError::Form(end, "COMMIT".to_owned()));
        }
        match chains.rules.is_empty() {
            true => Err(ImportError::Form(
                "the file".to_owned(),
                "a table *filter with its chains".to_owned(),
            )),
            false => Ok(chains),
        }
    }
}

/// The words of a rule; `None` if quotation marks are open.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '\\' if is_quoted => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!is_quoted).then_some(words)
}
