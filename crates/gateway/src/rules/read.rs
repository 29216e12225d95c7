//! The rule file: a rule on a line, `#` begins a comment.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::tokens::{Item, RuleError, Words};
use super::{
    Action, Addresses, Ports, Prefix, Protocols, Rule, RuleSet, TransportHeaders, protocol_number,
};
use crate::header::TransportHeader;

const ACTIONS: &str = "pass, drop, redirect, count or sample";
/// What a line may begin with.
const FIRST_WORDS: &str = "default, other, malformed, pass, drop, redirect, count or sample";
const FIELDS: &str = "proto, header, from, to, port, type, code or the end of the line";

impl RuleSet {
    /// Reads the text of a rule file.
    ///
    /// # Errors
    /// The first line that is no rule, with what was expected.
    pub fn parse(text: &str) -> Result<RuleSet, RuleError> {
        let mut set = RuleSet::default();
        let mut given = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let (code, comment) = line.split_once('#').unwrap_or((line, ""));
            let mut words = Words::new(number + 1, code);
            let Some(first) = words.peek() else {
                continue;
            };
            let general = match first {
                "default" => Some(&mut set.default),
                "other" => Some(&mut set.other),
                "malformed" => Some(&mut set.malformed),
                _ => None,
            };
            match general {
                Some(action) => {
                    if given.contains(&first) {
                        return Err(words.unexpected("a rule: an earlier line says this already"));
                    }
                    given.push(first);
                    words.word("")?;
                    *action = read_action(&mut words, ACTIONS)?;
                    if !words.is_at_end() {
                        return Err(words.unexpected("the end of the line"));
                    }
                }
                None => {
                    let mut rule = read_rule(&mut words)?;
                    rule.comment = comment.trim().to_owned();
                    set.rules.push(rule);
                }
            }
        }
        Ok(set)
    }
}

/// Reads an action; `expected` is all that may stand in its place.
fn read_action(words: &mut Words<'_>, expected: &str) -> Result<Action, RuleError> {
    let word = words.word(expected)?;
    Ok(match word.text {
        "pass" => Action::Pass,
        "drop" => Action::Drop,
        "count" => Action::Count,
        "redirect" => {
            const INTERFACE: &str = "the index of an interface, or its name: at most \
                15 bytes of letters, digits and ._-@+%=,";
            let name = words.word(INTERFACE)?;
            match is_interface(name.text) {
                true => Action::Redirect(name.text.to_owned()),
                false => return Err(name.unexpected(INTERFACE)),
            }
        }
        "sample" => match words.peek().and_then(|word| word.strip_prefix("1/")) {
            None => Action::Sample(1),
            Some(rate) => {
                let rate: Option<u32> = rate.parse().ok();
                // The rate has 29 bits in the table.
                let rate = rate.filter(|rate| (1..1 << 29).contains(rate));
                let rate =
                    rate.ok_or_else(|| words.unexpected("1/N with N from 1 to 536870911"))?;
                words.word("")?;
                Action::Sample(rate)
            }
        },
        _ => return Err(word.unexpected(expected)),
    })
}

/// True for names that Linux gives to an interface, and that no shell takes for something else. Linux
/// itself allows more characters (`dev_valid_name`).
fn is_interface(name: &str) -> bool {
    let is_usual =
        |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+%=,".contains(&byte) || byte > 0x7f;
    (1..16).contains(&name.len()) && name.bytes().all(is_usual) && ![".", ".."].contains(&name)
}

fn read_rule(words: &mut Words<'_>) -> Result<Rule, RuleError> {
    let mut rule = Rule::new(read_action(words, FIRST_WORDS)?);
    let mut seen: Vec<&str> = Vec::new();
    // The side that `port` belongs to.
    let mut side = None;
    while let Some(word) = words.peek() {
        let key = match (word, side) {
            ("port", Some("from")) => "source port",
            ("port", Some(_)) => "destination port",
            ("port", None) => return Err(words.unexpected("from or to before port")),
            ("proto" | "header" | "from" | "to" | "type" | "code", _) => word,
            _ => return Err(words.unexpected(FIELDS)),
        };
        if seen.contains(&key) {
            return Err(words.unexpected(format!("{key} once")));
        }
        let has_kind = match key {
            "source port" | "destination port" => rule.protocols.have_ports(),
            "type" | "code" => rule.protocols.have_types(),
            _ => true,
        };
        if !has_kind {
            return Err(words.unexpected(match key {
                "type" | "code" => "proto icmp or icmpv6 before type and code",
                _ => "proto tcp, udp, dccp, sctp or udplite before port",
            }));
        }
        seen.push(key);
        words.word("")?;
        let is_negated = words.take("not");
        match key {
            "proto" => rule.protocols = read_protocols(words, is_negated)?,
            "header" => rule.headers = read_headers(words, is_negated)?,
            "from" => rule.source = read_addresses(words, is_negated)?,
            "to" => rule.destination = read_addresses(words, is_negated)?,
            "source port" => rule.source_ports = read_ports(words, is_negated, u16::MAX)?,
            "destination port" => rule.destination_ports = read_ports(words, is_negated, u16::MAX)?,
            "type" => rule.source_ports = read_ports(words, is_negated, 255)?,
            _ => rule.destination_ports = read_ports(words, is_negated, 255)?,
        }
        if matches!(word, "from" | "to") {
            side = Some(word);
        }
    }
    Ok(rule)
}

fn read_protocols(words: &mut Words<'_>, is_negated: bool) -> Result<Protocols, RuleError> {
    const EXPECTED: &str = "any, or names or numbers of protocols with commas between them";
    let word = words.word(EXPECTED)?;
    if word.text == "any" && !is_negated {
        return Ok(Protocols::default());
    }
    let number = |item: Item<'_>| {
        let number = item
            .text
            .parse()
            .ok()
            .or_else(|| protocol_number(item.text));
        number.ok_or_else(|| item.unexpected(EXPECTED))
    };
    let list: Result<Vec<u8>, RuleError> = word.parts().map(number).collect();
    Ok(Protocols {
        is_negated,
        list: list?,
    })
}

fn read_headers(words: &mut Words<'_>, is_negated: bool) -> Result<TransportHeaders, RuleError> {
    const EXPECTED: &str = "any, or whole, cut, offset8 or later with commas between them";
    let word = words.word(EXPECTED)?;
    if word.text == "any" && !is_negated {
        return Ok(TransportHeaders::default());
    }
    let header = |item: Item<'_>| {
        let mut all = TransportHeader::ALL.into_iter();
        let found = all.find(|header| header.name() == item.text);
        found.ok_or_else(|| item.unexpected(EXPECTED))
    };
    let list: Vec<TransportHeader> = word.parts().map(header).collect::<Result<_, _>>()?;
    TransportHeaders::where_in(|it| list.contains(&it) != is_negated)
        .ok_or_else(|| word.unexpected("some header: a rule for none matches nothing"))
}

fn read_addresses(words: &mut Words<'_>, is_negated: bool) -> Result<Addresses, RuleError> {
    const EXPECTED: &str = "any, or prefixes of IPv4 or IPv6 with commas between them";
    let word = words.word(EXPECTED)?;
    if word.text == "any" && !is_negated {
        return Ok(Addresses::default());
    }
    let prefixes: Result<Vec<Prefix>, RuleError> = word
        .parts()
        .map(|item| match read_prefix(item.text) {
            Ok(prefix) => Ok(prefix),
            Err(expected) => Err(item.unexpected(expected.unwrap_or(EXPECTED.to_owned()))),
        })
        .collect();
    Ok(Addresses {
        is_negated,
        prefixes: prefixes?,
    })
}

/// Reads a prefix; the error says what was expected if it is a particular thing.
pub(crate) fn read_prefix(text: &str) -> Result<Prefix, Option<String>> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let bits = |most: u8| match bits {
        None => Ok(most),
        Some(bits) => {
            let is_plain = bits == "0" || !bits.starts_with(['0', '+']);
            let bits: Option<u8> = bits.parse().ok().filter(|_| is_plain);
            bits.filter(|bits| *bits <= most)
                .ok_or_else(|| Some(format!("a prefix length from 0 to {most}")))
        }
    };
    let prefix = if let Ok(address) = address.parse::<Ipv4Addr>() {
        Prefix::V4(address.into(), bits(32)?)
    } else if let Ok(address) = address.parse::<Ipv6Addr>() {
        Prefix::V6(address.into(), bits(128)?)
    } else {
        return Err(None);
    };
    let (network, _) = prefix.range();
    let is_network = match prefix {
        Prefix::V4(address, _) => network == u128::from(address),
        Prefix::V6(address, _) => network == address,
    };
    match is_network {
        true => Ok(prefix),
        false => {
            let network = match prefix {
                Prefix::V4(_, bits) => Prefix::V4(network as u32, bits),
                Prefix::V6(_, bits) => Prefix::V6(network, bits),
            };
            Err(Some(format!("no bits behind the prefix length: {network}")))
        }
    }
}

fn read_ports(words: &mut Words<'_>, is_negated: bool, most: u16) -> Result<Ports, RuleError> {
    let expected = match is_negated {
        true => format!("numbers to {most} or ranges A-B with commas between them"),
        false => {
            format!("any, or numbers to {most}, ranges A-B or unknown with commas between them")
        }
    };
    let word = words.word(&expected)?;
    if word.text == "any" && !is_negated {
        return Ok(Ports::default());
    }
    let is_unknown = |item: &Item<'_>| item.text == "unknown" && !is_negated;
    let range = |item: Item<'_>| {
        let (first, last) = item.text.split_once('-').unwrap_or((item.text, item.text));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) if first <= last && last <= most => Ok((first, last)),
            _ => Err(item.unexpected(expected.clone())),
        }
    };
    let known = word.parts().filter(|item| !is_unknown(item));
    let ranges: Result<Vec<(u16, u16)>, RuleError> = known.map(range).collect();
    Ok(Ports {
        is_negated,
        ranges: ranges?,
        has_unknown: word.parts().any(|item| is_unknown(&item)),
    })
}
