//! One rule of `iptables-save`: its conditions as a union of products, and its target.

use super::super::assumptions::{Assumptions, Side};
use super::super::chains::{Branch, ChainRule, Target};
use super::super::conditions::{intersect_all, subtract};
use super::super::{Fate, values};
use crate::rules::{Action, Addresses, Ports, Prefix, Protocols, Rule, protocol_number};

/// Targets behind which the chain goes on.
const WITHOUT_VERDICT: [&str; 14] = [
    "LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "MARK", "CONNMARK", "SET", "CT", "TOS", "DSCP",
    "CLASSIFY", "SECMARK", "TCPMSS",
];

/// Matches whose conditions can be expressed, or decided by assumptions.
const MATCHES: [&str; 14] = [
    "tcp",
    "udp",
    "sctp",
    "dccp",
    "udplite",
    "icmp",
    "icmp6",
    "icmpv6",
    "multiport",
    "comment",
    "iprange",
    "conntrack",
    "state",
    "addrtype",
];

/// Reads the words behind `-A CHAIN`.
pub(super) fn read(
    words: &[String],
    is_v6: bool,
    assumptions: &Assumptions,
    place: String,
    text: &str,
) -> ChainRule {
    let mut reader = Reader {
        is_v6,
        assumptions,
        conditions: vec![Rule::new(Action::Pass)],
        never: None,
        comment: String::new(),
    };
    let mut notes = Vec::new();
    let mut branches = Vec::new();
    if let Some(target) = target(words, &mut notes) {
        let result = reader.read(words);
        match (reader.never, result) {
            // Whatever else it asks for.
            (Some(reason), _) => notes = vec![(Fate::WithoutEffect, reason)],
            (None, Err(reason)) => notes = vec![(Fate::LeftOut, reason)],
            (None, Ok(())) => branches.push(Branch {
                conditions: reader.conditions,
                target,
            }),
        }
    }
    ChainRule {
        place,
        text: text.to_owned(),
        comment: reader.comment,
        branches,
        notes,
    }
}

/// The target; `None` with a note if packets go on behind the rule.
fn target(words: &[String], notes: &mut Vec<(Fate, String)>) -> Option<Target> {
    let named = words.windows(2).find_map(|pair| match &*pair[0] {
        "-j" | "--jump" => Some((&*pair[1], false)),
        "-g" | "--goto" => Some((&*pair[1], true)),
        _ => None,
    });
    let mut note = |fate, reason: String| notes.push((fate, reason));
    Some(match named {
        None => {
            note(Fate::WithoutEffect, "no target: it only counts".to_owned());
            return None;
        }
        Some((name, true)) => Target::Goto(name.to_owned()),
        Some(("ACCEPT", _)) => Target::Verdict(Action::Pass),
        Some(("DROP", _)) => Target::Verdict(Action::Drop),
        Some(("REJECT", _)) => {
            note(
                Fate::Kept,
                "REJECT becomes drop: no answer is sent".to_owned(),
            );
            Target::Verdict(Action::Drop)
        }
        Some(("RETURN", _)) => Target::Return,
        Some((name, _)) if WITHOUT_VERDICT.contains(&name) => {
            note(Fate::WithoutEffect, format!("{name} gives no verdict"));
            return None;
        }
        Some((name, _)) => Target::Jump(name.to_owned()),
    })
}

struct Reader<'a> {
    is_v6: bool,
    assumptions: &'a Assumptions,
    conditions: Vec<Rule>,
    /// Reason why it matches no packet.
    never: Option<String>,
    comment: String,
}

impl Reader<'_> {
    /// Reads the options up to the target. The error is about the first that cannot be expressed.
    fn read(&mut self, words: &[String]) -> Result<(), String> {
        let mut words = words.iter().map(String::as_str).peekable();
        let mut is_negated = false;
        let mut result = Ok(());
        while let Some(word) = words.next() {
            match word {
                "!" => {
                    is_negated = true;
                    continue;
                }
                // Options of the target follow.
                "-j" | "--jump" | "-g" | "--goto" => break,
                _ => {}
            }
            let negated = std::mem::take(&mut is_negated);
            let value = words.next_if(|it| word == "--comment" || !it.starts_with(['-', '!']));
            let read = match value {
                Some(value) => self.option(word, value, negated),
                None => Err(format!("the option {word}")),
            };
            result = result.and(read);
        }
        let lacks_ports = |rule: &Rule| {
            let has_any = rule.source_ports.is_any() && rule.destination_ports.is_any();
            !has_any && !rule.protocols.have_ports() && !rule.protocols.have_types()
        };
        match self.conditions.iter().any(lacks_ports) {
            true => result.and(Err("ports without a protocol that has them".to_owned())),
            false => result,
        }
    }

    fn option(&mut self, word: &str, value: &str, is_negated: bool) -> Result<(), String> {
        let mut rule = Rule::new(Action::Pass);
        match word {
            "--comment" => {
                value.clone_into(&mut self.comment);
                return Ok(());
            }
            "-m" | "--match" => {
                return match MATCHES.contains(&value) {
                    true => Ok(()),
                    false => Err(format!("the match {value}")),
                };
            }
            "-i" | "--in-interface" | "-o" | "--out-interface" => {
                let side = match word {
                    "-i" | "--in-interface" => Side::In,
                    _ => Side::Out,
                };
                let is_met = self.assumptions.has_interface(side, &[value], '+')?;
                self.decide(is_met != is_negated, word, value);
                return Ok(());
            }
            "--ctstate" | "--state" => {
                let states: Vec<&str> = value.split(',').collect();
                let is_met = self.assumptions.has_state(&states)?;
                self.decide(is_met != is_negated, word, value);
                return Ok(());
            }
            "-p" | "--protocol" => rule.protocols = protocol(value, is_negated)?,
            "-s" | "--source" | "--src" => rule.source = self.addresses(value, is_negated)?,
            "-d" | "--destination" | "--dst" => {
                rule.destination = self.addresses(value, is_negated)?;
            }
            "--src-type" => rule.source = self.kind(word, value, is_negated)?,
            "--dst-type" => rule.destination = self.kind(word, value, is_negated)?,
            "--src-range" => rule.source = self.range(value, is_negated)?,
            "--dst-range" => rule.destination = self.range(value, is_negated)?,
            "--sport" | "--source-port" | "--sports" | "--source-ports" => {
                rule.source_ports = ports(value, is_negated)?;
            }
            "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
                rule.destination_ports = ports(value, is_negated)?;
            }
            "--ports" => {
                let ports = ports(value, is_negated)?;
                if !is_negated {
                    let mut other = rule.clone();
                    other.source_ports = ports.clone();
                    rule.destination_ports = ports;
                    self.require(&[other, rule]);
                    return Ok(());
                }
                rule.source_ports = ports.clone();
                rule.destination_ports = ports;
            }
            "--icmp-type" | "--icmpv6-type" => {
                let asked = icmp(value, if self.is_v6 { 58 } else { 1 })?;
                // A message without a type, as in a later fragment, matches neither way.
                rule.protocols = asked.protocols.clone();
                rule.source_ports.ranges.push((0, 255));
                if is_negated {
                    self.require(&subtract(&rule, &asked));
                    return Ok(());
                }
                self.require(&[rule]);
                rule = asked;
            }
            _ => return Err(format!("the option {word}")),
        }
        self.require(&[rule]);
        Ok(())
    }

    /// Enters a condition.
    fn require(&mut self, union: &[Rule]) {
        self.conditions = intersect_all(&self.conditions, union);
        if self.conditions.is_empty() {
            let reason = || "never matches: its conditions exclude each other".to_owned();
            self.never.get_or_insert_with(reason);
        }
    }

    /// Enters a condition that the assumptions decide.
    fn decide(&mut self, is_met: bool, word: &str, value: &str) {
        if !is_met {
            let reason = || format!("never matches under the assumptions: {word} {value}");
            self.never.get_or_insert_with(reason);
        }
    }

    /// A prefix, with a mask in either form.
    fn addresses(&self, text: &str, is_negated: bool) -> Result<Addresses, String> {
        let prefixes = text.split(',').map(|text| {
            let (address, mask) = match text.split_once('/') {
                Some((address, mask)) => (address, Some(mask)),
                None => (text, None),
            };
            let bits = match mask {
                None => Some(if self.is_v6 { 128 } else { 32 }),
                Some(mask) => values::prefix_length(mask, self.is_v6),
            };
            // iptables keeps bits behind the mask away; so do we.
            let address = values::address(address, self.is_v6);
            let prefix = address.zip(bits);
            prefix
                .and_then(|(address, bits)| values::prefix(address, bits, self.is_v6))
                .ok_or_else(|| format!("the address {text}"))
        });
        Ok(Addresses {
            is_negated,
            prefixes: prefixes.collect::<Result<_, String>>()?,
        })
    }

    fn range(&self, text: &str, is_negated: bool) -> Result<Addresses, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let mut prefixes = Vec::new();
        values::range(first, last, self.is_v6, &mut prefixes)
            .ok_or_else(|| format!("the range {text}"))?;
        Ok(Addresses {
            is_negated,
            prefixes,
        })
    }

    /// The addresses of a kind that does not depend on the host's own addresses.
    fn kind(&self, word: &str, value: &str, is_negated: bool) -> Result<Addresses, String> {
        let prefix = match (value, self.is_v6) {
            ("MULTICAST", false) => Prefix::V4(0xe000_0000, 4),
            ("MULTICAST", true) => Prefix::V6(0xff << 120, 8),
            _ => return Err(format!("{word} {value} depends on the host's addresses")),
        };
        Ok(Addresses {
            is_negated,
            prefixes: vec![prefix],
        })
    }
}

fn protocol(name: &str, is_negated: bool) -> Result<Protocols, String> {
    if name == "all" || name == "0" {
        return match is_negated {
            true => Err("! -p all".to_owned()),
            false => Ok(Protocols::default()),
        };
    }
    let number = name.parse().ok().or_else(|| protocol_number(name));
    let number = number.ok_or_else(|| format!("the protocol {name}"))?;
    Ok(Protocols {
        is_negated,
        list: vec![number],
    })
}

fn ports(text: &str, is_negated: bool) -> Result<Ports, String> {
    let unknown = || format!("the ports {text}");
    let ranges = text.split(',').map(|part| {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        let first = if first.is_empty() { "0" } else { first };
        let last = if last.is_empty() { "65535" } else { last };
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
            _ => Err(unknown()),
        }
    });
    Ok(Ports {
        is_negated,
        ranges: ranges.collect::<Result<_, String>>()?,
        ..Ports::default()
    })
}

/// `TYPE` or `TYPE/CODE` in numbers, as iptables-save prints them.
fn icmp(text: &str, protocol: u8) -> Result<Rule, String> {
    let mut rule = Rule::new(Action::Pass);
    rule.protocols.list.push(protocol);
    if matches!(text, "any" | "255") {
        return Ok(rule);
    }
    let (kind, code) = match text.split_once('/') {
        Some((kind, code)) => (kind, Some(code)),
        None => (text, None),
    };
    let number = |text: &str| match text.parse::<u8>() {
        Ok(number) => Ok(u16::from(number)),
        Err(_) => Err(format!("the ICMP type {text}")),
    };
    let kind = number(kind)?;
    rule.source_ports.ranges.push((kind, kind));
    if let Some(code) = code {
        let code = number(code)?;
        rule.destination_ports.ranges.push((code, code));
    }
    Ok(rule)
}
