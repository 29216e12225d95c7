//! Conditions of a match of nftables.

use serde_json::Value;

use super::super::assumptions::{Assumptions, Side};
use super::super::conditions::intersect_all;
use super::super::values;
use super::word;
use crate::rules::{Action, Addresses, Ports, Prefix, Protocols, Rule, protocol_number};

/// Context of a match beside its own text.
pub(super) struct Context<'c> {
    /// Sets and maps of the table by name.
    pub(super) set: &'c dyn Fn(&str) -> Option<&'c Value>,
    pub(super) assumptions: &'c Assumptions,
}

/// A union of products, and the verdict on the packets that meet it.
pub(super) type VerdictBranch = (Vec<Rule>, Value);

/// Condition on packets.
pub(super) enum Condition {
    /// They meet one of these products.
    Union(Vec<Rule>),
    /// They meet one of these products, but for the difference that the text states.
    Near(Vec<Rule>, String),
    /// They meet one of these products if all their protocols have ports: `th` reads the first
    /// bytes of any protocol.
    Transport(Vec<Rule>),
    /// There are none, for this reason.
    Never(String),
}

impl From<Rule> for Condition {
    fn from(rule: Rule) -> Condition {
        Condition::Union(vec![rule])
    }
}

fn all() -> Rule {
    Rule::new(Action::Pass)
}

impl Context<'_> {
    /// The condition of a match.
    ///
    /// # Errors
    /// The reason if it cannot be expressed.
    pub(super) fn condition(&self, value: &Value) -> Result<Condition, String> {
        let (left, right) = (&value["left"], &value["right"]);
        let is_negated = match value["op"].as_str() {
            Some("==" | "in") => false,
            Some("!=") => true,
            Some(order @ ("<" | "<=" | ">" | ">=")) => {
                return match values_in_order(order, left, right)? {
                    Some(values) => self.compare(left, &[values], false),
                    None => {
                        let reason = format!("never matches: no value is {order} {right}");
                        Ok(Condition::Never(reason))
                    }
                };
            }
            _ => return Err(format!("the comparison {}", value["op"])),
        };
        self.compare(left, &self.items(right)?, is_negated)
    }

    /// Pairs of conditions and verdicts of a verdict map, and true if its key has ports of any
    /// protocol ([`Condition::Transport`]).
    pub(super) fn verdict_map(&self, value: &Value) -> Result<(Vec<VerdictBranch>, bool), String> {
        let data = &value["data"];
        let pairs = match data.as_str().and_then(|name| name.strip_prefix('@')) {
            Some(name) => self.named(name)?.to_vec(),
            None => (data["set"].as_array())
                .ok_or("a verdict map of another form")?
                .clone(),
        };
        let mut branches = Vec::new();
        let mut reads_transport = false;
        for pair in &pairs {
            let Some([key, verdict]) = pair.as_array().map(Vec::as_slice) else {
                return Err(format!("the element {pair} of a verdict map"));
            };
            match self.compare(&value["key"], &[plain(key)], false)? {
                Condition::Near(_, why) => return Err(why),
                Condition::Never(_) => {}
                Condition::Union(union) => branches.push((union, verdict.clone())),
                Condition::Transport(union) => {
                    reads_transport = true;
                    branches.push((union, verdict.clone()));
                }
            }
        }
        Ok((branches, reads_transport))
    }

    /// The elements of a set or map by its name.
    fn named(&self, name: &str) -> Result<&[Value], String> {
        let set = (self.set)(name).ok_or_else(|| format!("the set {name}, which is missing"))?;
        let flags = set["flags"].as_array().map_or(&[][..], Vec::as_slice);
        match flags
            .iter()
            .any(|flag| matches!(flag.as_str(), Some("dynamic" | "timeout")))
        {
            true => Err(format!("the set {name}, whose elements come and go")),
            false => Ok(set["elem"].as_array().map_or(&[][..], Vec::as_slice)),
        }
    }

    /// The elements on the right side of a match.
    fn items(&self, right: &Value) -> Result<Vec<Value>, String> {
        let list = match right {
            Value::String(name) if name.starts_with('@') => self.named(&name[1..])?,
            Value::Array(list) => list,
            Value::Object(object) => match object.get("set") {
                Some(Value::Array(list)) => list,
                Some(Value::String(name)) if name.starts_with('@') => self.named(&name[1..])?,
                Some(other) => return Ok(vec![plain(other)]),
                None => return Ok(vec![right.clone()]),
            },
            _ => return Ok(vec![right.clone()]),
        };
        Ok(list.iter().map(plain).collect())
    }

    fn compare(
        &self,
        left: &Value,
        items: &[Value],
        is_negated: bool,
    ) -> Result<Condition, String> {
        if items.is_empty() {
            // Every value is outside of an empty set.
            return Ok(match is_negated {
                true => all().into(),
                false => Condition::Never("never matches: the set is empty".to_owned()),
            });
        }
        if let Some(fields) = left["concat"].as_array() {
            return match is_negated {
                true => Err("all but some concatenations".to_owned()),
                false => self.concatenation(fields, items),
            };
        }
        let (protocol, field, mask) = match (&left["payload"], &left["meta"], &left["ct"]) {
            (payload @ Value::Object(_), _, _) => {
                (word(&payload["protocol"]), word(&payload["field"]), None)
            }
            (_, meta @ Value::Object(_), _) => ("meta".to_owned(), word(&meta["key"]), None),
            (_, _, ct @ Value::Object(_)) => ("ct".to_owned(), word(&ct["key"]), None),
            _ => match left["&"].as_array().map(Vec::as_slice) {
                Some([payload, mask]) if payload["payload"].is_object() => {
                    let payload = &payload["payload"];
                    (
                        word(&payload["protocol"]),
                        word(&payload["field"]),
                        mask.as_str(),
                    )
                }
                _ => return Err(format!("a match of {left}")),
            },
        };
        let is_address = matches!(&*field, "saddr" | "daddr");
        if mask.is_some() && !is_address || protocol.is_empty() {
            return Err(format!("a match of {left}"));
        }
        let is_v6 = matches!(&*protocol, "ip6" | "icmpv6");
        let mut rule = all();
        let family = match is_v6 {
            true => Prefix::V6(0, 0),
            false => Prefix::V4(0, 0),
        };
        match (&*protocol, &*field) {
            ("ip" | "ip6", "saddr" | "daddr") => {
                let addresses = addresses(items, is_negated, is_v6, mask)?;
                match &*field {
                    "saddr" => rule.source = addresses,
                    _ => rule.destination = addresses,
                }
            }
            ("ip", "protocol") | ("meta", "l4proto") | ("ip6", "nexthdr") => {
                rule.protocols = protocols(items, is_negated)?;
                if protocol != "meta" {
                    rule.source.prefixes.push(family);
                }
                if is_v6 {
                    let note = "ip6 nexthdr: compared with the protocol behind extension headers";
                    return Ok(Condition::Near(vec![rule], note.to_owned()));
                }
            }
            ("meta", "nfproto" | "protocol") => return families(items, is_negated),
            ("meta", "iifname" | "iif" | "oifname" | "oif") => {
                return self.interface(&field, items, is_negated);
            }
            ("ct", "state") => return self.state(items, is_negated),
            ("tcp" | "udp" | "sctp" | "dccp" | "udplite" | "th", "sport" | "dport") => {
                rule.protocols.list.extend(protocol_number(&protocol));
                let ports = ports(items, is_negated, &|_| None)?;
                match &*field {
                    "sport" => rule.source_ports = ports,
                    _ => rule.destination_ports = ports,
                }
                if rule.protocols.is_any() {
                    return Ok(Condition::Transport(vec![rule]));
                }
            }
            ("icmp" | "icmpv6", "type" | "code") => {
                rule.protocols.list = vec![if is_v6 { 58 } else { 1 }];
                rule.source.prefixes.push(family);
                match &*field {
                    "type" => {
                        let named = |name: &str| icmp_type(name, is_v6);
                        rule.source_ports = ports(items, is_negated, &named)?;
                    }
                    _ => {
                        let named = |name: &str| icmp_code(name, is_v6);
                        rule.destination_ports = ports(items, is_negated, &named)?;
                    }
                }
            }
            _ => return Err(format!("a match of {protocol} {field}")),
        }
        Ok(rule.into())
    }

    /// Elements that are concatenations of the values of several fields.
    fn concatenation(&self, fields: &[Value], items: &[Value]) -> Result<Condition, String> {
        let mut union = Vec::new();
        let mut reads_transport = false;
        for item in items {
            let parts = item["concat"].as_array();
            let parts = parts.filter(|parts| parts.len() == fields.len());
            let parts = parts.ok_or_else(|| format!("the element {item}"))?;
            let mut product = vec![all()];
            for (field, part) in fields.iter().zip(parts) {
                match self.compare(field, &self.items(part)?, false)? {
                    Condition::Union(union) => product = intersect_all(&product, &union),
                    Condition::Transport(union) => {
                        reads_transport = true;
                        product = intersect_all(&product, &union);
                    }
                    Condition::Near(_, why) => return Err(why),
                    Condition::Never(_) => product.clear(),
                }
            }
            union.extend(product);
        }
        Ok(match union.is_empty() {
            true => Condition::Never("no element of the set matches".to_owned()),
            false if reads_transport => Condition::Transport(union),
            false => Condition::Union(union),
        })
    }

    fn interface(
        &self,
        field: &str,
        items: &[Value],
        is_negated: bool,
    ) -> Result<Condition, String> {
        let side = if field.starts_with('i') {
            Side::In
        } else {
            Side::Out
        };
        let names: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
        let names = names.ok_or_else(|| format!("the names of meta {field}"))?;
        let is_met = self.assumptions.has_interface(side, &names, '*')? != is_negated;
        Ok(decided(is_met, &format!("{field} {}", names.join(", "))))
    }

    fn state(&self, items: &[Value], is_negated: bool) -> Result<Condition, String> {
        let states: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
        let states = states.ok_or("a state of connections of another form")?;
        let is_met = self.assumptions.has_state(&states)? != is_negated;
        Ok(decided(is_met, &format!("ct state {}", states.join(", "))))
    }
}

/// The values that are less or greater than a number, as a range; `None` if there are none.
fn values_in_order(order: &str, left: &Value, right: &Value) -> Result<Option<Value>, String> {
    let most: u64 = match left["payload"]["field"].as_str() {
        Some("sport" | "dport") => 65535,
        _ => 255,
    };
    let number = right.as_u64();
    let number = number.ok_or_else(|| format!("the comparison {order} {right}"))?;
    let range = match order {
        "<" => number.checked_sub(1).map(|last| (0, last)),
        "<=" => Some((0, number)),
        ">" => Some((number.saturating_add(1), most)),
        _ => Some((number, most)),
    };
    let range = range.filter(|(first, last)| first <= last);
    Ok(range.map(|(first, last)| serde_json::json!({ "range": [first, last.min(most)] })))
}

/// A condition that the assumptions decide.
fn decided(is_met: bool, condition: &str) -> Condition {
    match is_met {
        true => all().into(),
        false => Condition::Never(format!("never matches under the assumptions: {condition}")),
    }
}

/// An element without its timeout, comment or counter.
fn plain(item: &Value) -> Value {
    match item.get("elem") {
        Some(element) => element["val"].clone(),
        None => item.clone(),
    }
}

/// The condition of `meta nfproto` or `meta protocol`.
fn families(items: &[Value], is_negated: bool) -> Result<Condition, String> {
    let [Value::String(name)] = items else {
        return Err("a match of several families".to_owned());
    };
    let is_v6 = match &**name {
        "ipv4" | "ip" => is_negated,
        "ipv6" | "ip6" => !is_negated,
        _ => return Err(format!("a match of the family {name}")),
    };
    let mut rule = all();
    rule.source.prefixes.push(match is_v6 {
        true => Prefix::V6(0, 0),
        false => Prefix::V4(0, 0),
    });
    Ok(rule.into())
}

fn addresses(
    items: &[Value],
    is_negated: bool,
    is_v6: bool,
    mask: Option<&str>,
) -> Result<Addresses, String> {
    let width = if is_v6 { 128 } else { 32 };
    let width = match mask {
        Some(mask) => values::prefix_length(mask, is_v6)
            .filter(|bits| *bits <= width)
            .ok_or_else(|| format!("the mask {mask}"))?,
        None => width,
    };
    let mut prefixes = Vec::new();
    for item in items {
        let unknown = || format!("the address {item}");
        if let Some(text) = item.as_str() {
            let (text, bits) = match text.split_once('/') {
                Some((text, bits)) => (text, bits.parse().map_err(|_| unknown())?),
                None => (text, width),
            };
            let found = values::address(text, is_v6);
            let found = found.and_then(|address| values::prefix(address, bits, is_v6));
            prefixes.push(found.ok_or_else(unknown)?);
        } else if mask.is_some() {
            return Err(unknown());
        } else if let Some(given) = item.get("prefix") {
            let bits = given["len"].as_u64();
            let bits = bits.and_then(|bits| u8::try_from(bits).ok());
            let first = given["addr"].as_str();
            let first = first.and_then(|text| values::address(text, is_v6));
            let found = first.zip(bits);
            let found = found.and_then(|(first, bits)| values::prefix(first, bits, is_v6));
            prefixes.push(found.ok_or_else(unknown)?);
        } else if let Some([Value::String(first), Value::String(last)]) =
            item["range"].as_array().map(Vec::as_slice)
        {
            values::range(first, last, is_v6, &mut prefixes).ok_or_else(unknown)?;
        } else {
            return Err(unknown());
        }
    }
    Ok(Addresses {
        is_negated,
        prefixes,
    })
}

fn protocols(items: &[Value], is_negated: bool) -> Result<Protocols, String> {
    let number = |item: &Value| {
        let number = match item {
            Value::Number(number) => number.as_u64().and_then(|it| u8::try_from(it).ok()),
            Value::String(name) => name.parse().ok().or_else(|| protocol_number(name)),
            _ => None,
        };
        number.ok_or_else(|| format!("the protocol {item} is unknown"))
    };
    let list: Result<Vec<u8>, String> = items.iter().map(number).collect();
    Ok(Protocols {
        is_negated,
        list: list?,
    })
}

fn ports(
    items: &[Value],
    is_negated: bool,
    named: &dyn Fn(&str) -> Option<u16>,
) -> Result<Ports, String> {
    let port = |item: &Value| {
        let port = match item {
            Value::Number(number) => number.as_u64().and_then(|it| u16::try_from(it).ok()),
            Value::String(name) => named(name).or_else(|| name.parse().ok()),
            _ => None,
        };
        port.ok_or_else(|| format!("the port or type {item}"))
    };
    let range = |item: &Value| match item.get("range").and_then(Value::as_array) {
        Some(range) => match &range[..] {
            [first, last] => match (port(first)?, port(last)?) {
                (first, last) if first <= last => Ok((first, last)),
                _ => Err(format!("{item} is no range in order")),
            },
            _ => Err(format!("{item} is no range in order")),
        },
        None => port(item).map(|port| (port, port)),
    };
    let ranges: Result<Vec<(u16, u16)>, String> = items.iter().map(range).collect();
    Ok(Ports {
        is_negated,
        ranges: ranges?,
        ..Ports::default()
    })
}

/// The number of an ICMP type by nft's name.
fn icmp_type(name: &str, is_v6: bool) -> Option<u16> {
    const V4: &[(&str, u16)] = &[
        ("echo-reply", 0),
        ("destination-unreachable", 3),
        ("source-quench", 4),
        ("redirect", 5),
        ("echo-request", 8),
        ("router-advertisement", 9),
        ("router-solicitation", 10),
        ("time-exceeded", 11),
        ("parameter-problem", 12),
        ("timestamp-request", 13),
        ("timestamp-reply", 14),
        ("info-request", 15),
        ("info-reply", 16),
        ("address-mask-request", 17),
        ("address-mask-reply", 18),
    ];
    const V6: &[(&str, u16)] = &[
        ("destination-unreachable", 1),
        ("packet-too-big", 2),
        ("time-exceeded", 3),
        ("parameter-problem", 4),
        ("echo-request", 128),
        ("echo-reply", 129),
        ("mld-listener-query", 130),
        ("mld-listener-report", 131),
        ("mld-listener-done", 132),
        ("nd-router-solicit", 133),
        ("nd-router-advert", 134),
        ("nd-neighbor-solicit", 135),
        ("nd-neighbor-advert", 136),
        ("nd-redirect", 137),
        ("mld2-listener-report", 143),
    ];
    let mut known = if is_v6 { V6 } else { V4 }.iter();
    known.find(|(it, _)| *it == name).map(|(_, number)| *number)
}

/// The number of an ICMP code by nft's name (`nft describe icmp code`), which is the same for all
/// types.
fn icmp_code(name: &str, is_v6: bool) -> Option<u16> {
    const V4: &[(&str, u16)] = &[
        ("net-unreachable", 0),
        ("host-unreachable", 1),
        ("prot-unreachable", 2),
        ("port-unreachable", 3),
        ("frag-needed", 4),
        ("net-prohibited", 9),
        ("host-prohibited", 10),
        ("admin-prohibited", 13),
    ];
    const V6: &[(&str, u16)] = &[
        ("no-route", 0),
        ("admin-prohibited", 1),
        ("addr-unreachable", 3),
        ("port-unreachable", 4),
        ("policy-fail", 5),
        ("reject-route", 6),
    ];
    let mut known = if is_v6 { V6 } else { V4 }.iter();
    known.find(|(it, _)| *it == name).map(|(_, number)| *number)
}
