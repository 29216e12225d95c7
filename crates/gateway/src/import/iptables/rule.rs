//! One rule of `iptables-save`: its conditions as a union of products, and its target.

use super::super::assumptions::{Assumptions, Side};
use super::super::chains::{Branch, ChainRule, Target};
use super::super::conditions::{intersect_all, subtract};
use super::super::{Fate, values};
use super::Variant;
use crate::header::TransportHeader;
use crate::rules::{
    Action, Addresses, Ports, Prefix, Protocols, Rule, TransportHeaders, protocol_number,
};

/// Targets behind which the chain goes on.
const WITHOUT_VERDICT: [&str; 14] = [
    "LOG", "NFLOG", "ULOG", "AUDIT", "TRACE", "MARK", "CONNMARK", "SET", "CT", "TOS", "DSCP",
    "CLASSIFY", "SECMARK", "TCPMSS",
];

/// A match (`-m`) whose conditions can be expressed, or decided by assumptions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// Of a transport protocol: `tcp`, `udp`, and those of which both variants of iptables have
    /// the kernel's extension.
    Tcp,
    Udp,
    OtherTransport,
    Multiport,
    /// Reads no transport header.
    Other,
}

impl Match {
    fn of(name: &str) -> Option<Match> {
        Some(match name {
            "tcp" => Match::Tcp,
            "udp" => Match::Udp,
            "sctp" | "dccp" | "udplite" | "icmp" | "icmp6" | "icmpv6" => Match::OtherTransport,
            "multiport" => Match::Multiport,
            "comment" | "iprange" | "conntrack" | "state" | "addrtype" => Match::Other,
            _ => return None,
        })
    }

    /// Packets that the kernel's extension drops (hotdrop) as soon as it is asked: their transport
    /// header is cut off. Also those that it does match at most, if there is a difference.
    /// `None` if it reads no transport header.
    fn hotdrop(self, is_v6: bool) -> Option<(Rule, Rule)> {
        let with = |headers: &[TransportHeader]| {
            let mut rule = Rule::new(Action::Pass);
            rule.headers.list = headers.to_vec();
            rule
        };
        let (mut dropped, matched) = match self {
            Match::Other => return None,
            // Of IPv6 the kernel compares the offset in other units.
            Match::Tcp if !is_v6 => (
                with(&[TransportHeader::Cut, TransportHeader::Offset8]),
                with(&[TransportHeader::Whole]),
            ),
            Match::Tcp | Match::Udp | Match::OtherTransport => (
                with(&[TransportHeader::Cut]),
                with(&[TransportHeader::Whole]),
            ),
            Match::Multiport => (
                with(&[TransportHeader::Cut]),
                with(&[TransportHeader::Whole, TransportHeader::Cut]),
            ),
        };
        if self == Match::Multiport {
            dropped.source_ports.has_unknown = true;
        }
        Some((dropped, matched))
    }
}

/// Reads the words behind `-A CHAIN`.
pub(super) fn read(words: &[String], dialect: Dialect<'_>, place: String, text: &str) -> ChainRule {
    let mut reader = Reader {
        dialect,
        conditions: vec![Rule::new(Action::Pass)],
        dropped: Vec::new(),
        is_translated: false,
        never: None,
        comment: String::new(),
    };
    let mut notes = Vec::new();
    let target = target(words, &mut notes);
    let result = reader.read(words);
    // What a match drops is dropped whatever the target is.
    let dropped = reader.dropped.into_iter().map(|conditions| Branch {
        conditions,
        target: Target::Hotdrop,
    });
    let mut branches: Vec<Branch> = dropped.collect();
    if let Some(target) = target {
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

/// An option of a rule.
struct OptionWords<'w> {
    name: &'w str,
    value: Option<&'w str>,
    is_negated: bool,
}

impl OptionWords<'_> {
    /// Condition of `tcp` or `udp` that iptables-nft hands to nftables as expressions. Matches
    /// without any go to the kernel's extension.
    fn is_translated(&self) -> bool {
        match self.name {
            "--sport" | "--source-port" | "--dport" | "--destination-port" => {
                self.is_negated || !matches!(self.value, Some("0:65535" | ":" | "0:" | ":65535"))
            }
            "--tcp-flags" | "--syn" => true,
            _ => false,
        }
    }
}

/// The options up to those of the target.
fn options(words: &[String]) -> Vec<OptionWords<'_>> {
    let mut words = words.iter().map(String::as_str).peekable();
    let mut options = Vec::new();
    let mut is_negated = false;
    while let Some(name) = words.next() {
        match name {
            "!" => is_negated = true,
            "-j" | "--jump" | "-g" | "--goto" => break,
            _ => {
                let is_value = |it: &&str| name == "--comment" || !it.starts_with(['-', '!']);
                options.push(OptionWords {
                    name,
                    value: words.next_if(is_value),
                    is_negated: std::mem::take(&mut is_negated),
                });
            }
        }
    }
    options
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

/// What the words of a rule mean beside themselves.
#[derive(Clone, Copy)]
pub(super) struct Dialect<'a> {
    pub(super) is_v6: bool,
    pub(super) variant: Variant,
    pub(super) assumptions: &'a Assumptions,
}

struct Reader<'a> {
    dialect: Dialect<'a>,
    conditions: Vec<Rule>,
    /// Conditions on packets that matches drop, one for each such match.
    dropped: Vec<Vec<Rule>>,
    /// `tcp` and `udp` are expressions of nftables, which drop no packet by themselves.
    is_translated: bool,
    /// Reason why it matches no packet.
    never: Option<String>,
    comment: String,
}

/// Options that the kernel compares before it asks any match.
fn is_of_ip(option: &str) -> bool {
    matches!(
        option,
        "-p" | "--protocol"
            | "-s"
            | "--source"
            | "--src"
            | "-d"
            | "--destination"
            | "--dst"
            | "-i"
            | "--in-interface"
            | "-o"
            | "--out-interface"
    )
}

impl Reader<'_> {
    /// Reads the options up to the target, in the kernel's order: those of IP, then the matches.
    /// The error is about the first that cannot be expressed.
    fn read(&mut self, words: &[String]) -> Result<(), String> {
        let options = options(words);
        let (of_ip, of_matches): (Vec<_>, Vec<_>) =
            options.iter().partition(|option| is_of_ip(option.name));
        self.is_translated = self.dialect.variant == Variant::Nft
            && of_matches.iter().any(|option| option.is_translated());
        for option in of_ip.into_iter().chain(of_matches) {
            let value = option
                .value
                .ok_or_else(|| format!("the option {}", option.name))?;
            self.option(option.name, value, option.is_negated)?;
        }
        let has_ports =
            |rule: &Rule| !rule.source_ports.is_any() || !rule.destination_ports.is_any();
        let lacks_ports = |rule: &Rule| {
            has_ports(rule) && !rule.protocols.have_ports() && !rule.protocols.have_types()
        };
        if self.conditions.iter().any(lacks_ports) {
            return Err("ports without a protocol that has them".to_owned());
        }
        // Packets with ports are no fragments, and those that are cut behind them were dropped.
        for rule in &mut self.conditions {
            if has_ports(rule) && !rule.source_ports.has_unknown {
                rule.headers = TransportHeaders::default();
            }
        }
        Ok(())
    }

    /// Enters what a match does before it reads its options.
    fn ask(&mut self, asked: Match) {
        let Some((dropped, matched)) = asked.hotdrop(self.dialect.is_v6) else {
            return;
        };
        if self.never.is_none() {
            let dropped = intersect_all(&self.conditions, &[dropped]);
            if !dropped.is_empty() {
                self.dropped.push(dropped);
            }
        }
        self.require(&[matched]);
    }

    fn option(&mut self, word: &str, value: &str, is_negated: bool) -> Result<(), String> {
        let mut rule = Rule::new(Action::Pass);
        match word {
            "--comment" => {
                value.clone_into(&mut self.comment);
                return Ok(());
            }
            "-m" | "--match" => {
                let asked = Match::of(value).ok_or_else(|| format!("the match {value}"))?;
                let has_ports = |rule: &Rule| rule.protocols.have_ports();
                if asked == Match::Multiport && !self.conditions.iter().all(has_ports) {
                    return Err("ports without a protocol that has them".to_owned());
                }
                if !(self.is_translated && matches!(asked, Match::Tcp | Match::Udp)) {
                    self.ask(asked);
                }
                return Ok(());
            }
            "-i" | "--in-interface" | "-o" | "--out-interface" => {
                let side = match word {
                    "-i" | "--in-interface" => Side::In,
                    _ => Side::Out,
                };
                let is_met = self
                    .dialect
                    .assumptions
                    .has_interface(side, &[value], '+')?;
                self.decide(is_met != is_negated, word, value);
                return Ok(());
            }
            "--ctstate" | "--state" => {
                let states: Vec<&str> = value.split(',').collect();
                let is_met = self.dialect.assumptions.has_state(&states)?;
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
                let asked = icmp(value, if self.dialect.is_v6 { 58 } else { 1 })?;
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
                None => Some(if self.dialect.is_v6 { 128 } else { 32 }),
                Some(mask) => values::prefix_length(mask, self.dialect.is_v6),
            };
            // iptables keeps bits behind the mask away; so do we.
            let address = values::address(address, self.dialect.is_v6);
            let prefix = address.zip(bits);
            prefix
                .and_then(|(address, bits)| values::prefix(address, bits, self.dialect.is_v6))
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
        values::range(first, last, self.dialect.is_v6, &mut prefixes)
            .ok_or_else(|| format!("{text} is no range of addresses in order"))?;
        Ok(Addresses {
            is_negated,
            prefixes,
        })
    }

    /// The addresses of a kind that does not depend on the host's own addresses.
    fn kind(&self, word: &str, value: &str, is_negated: bool) -> Result<Addresses, String> {
        let prefix = match (value, self.dialect.is_v6) {
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
            true => Err("! -p all matches no packet".to_owned()),
            false => Ok(Protocols::default()),
        };
    }
    let number = name.parse().ok().or_else(|| protocol_number(name));
    let number = number.ok_or_else(|| format!("the protocol {name} is unknown"))?;
    Ok(Protocols {
        is_negated,
        list: vec![number],
    })
}

fn ports(text: &str, is_negated: bool) -> Result<Ports, String> {
    let unknown =
        || format!("ports {text}: no numbers or ranges from the lower to the higher port");
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
        Err(_) => Err(format!("the ICMP type {text} is no number from 0 to 255")),
    };
    let kind = number(kind)?;
    rule.source_ports.ranges.push((kind, kind));
    if let Some(code) = code {
        let code = number(code)?;
        rule.destination_ports.ranges.push((code, code));
    }
    Ok(rule)
}
