//! The output of `nft -j list ruleset`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ChainRule, ImportError, Imported, Target, combine, flatten};
use crate::rules::{Action, Addresses, Ports, Prefix, Protocols, Rule, RuleSet, protocol_number};

/// A table: its family and name.
type TableName = (String, String);

/// Imports a base chain of type filter, by its name or as `FAMILY TABLE CHAIN`; without a name
/// the first one at the hook input that has rules, otherwise at forward, otherwise the first.
/// Packets of the other family pass.
///
/// # Errors
/// For text of another form, and if there is no such chain.
pub fn nft_json(text: &str, chain: Option<&str>) -> Result<Imported, ImportError> {
    let form = |place: String, expected: &str| ImportError::Form(place, expected.to_owned());
    let whole: Value = serde_json::from_str(text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        form(place, "JSON, as `nft -j list ruleset` prints it")
    })?;
    let objects = whole["nftables"].as_array();
    let objects = objects.ok_or_else(|| form("the document".into(), "the key \"nftables\""))?;
    let mut bases: Vec<(TableName, &Value)> = Vec::new();
    let mut chains: BTreeMap<(TableName, String), Vec<ChainRule>> = BTreeMap::new();
    let mut sets: BTreeMap<(TableName, String), Value> = BTreeMap::new();
    let table_of = |object: &Value| (word(&object["family"]), word(&object["table"]));
    for object in objects {
        if let Some(set) = object.get("set") {
            let elements = set.get("elem").cloned().unwrap_or(Value::Array(Vec::new()));
            sets.insert((table_of(set), word(&set["name"])), elements);
        }
        if let Some(chain) = object.get("chain")
            && chain["type"] == "filter"
        {
            bases.push((table_of(chain), chain));
        }
    }
    for object in objects {
        if let Some(rule) = object.get("rule") {
            let table = table_of(rule);
            let place = format!("handle {}", rule["handle"]);
            let expressions = rule["expr"].as_array();
            let expressions = expressions
                .ok_or_else(|| form(format!("rule with {place}"), "the key \"expr\""))?;
            let mut lost = Vec::new();
            let find = |name: &str| sets.get(&(table.clone(), name.to_owned()));
            let mut parsed = parse(expressions, &find, &mut lost);
            if let (Ok((own, _)), Some(comment)) = (&mut parsed, rule["comment"].as_str()) {
                comment.clone_into(&mut own.comment);
            }
            let name = word(&rule["chain"]);
            chains.entry((table, name)).or_default().push(ChainRule {
                place,
                text: rule["expr"].to_string(),
                parsed,
                lost,
            });
        }
    }
    let full = |base: &(TableName, &Value)| {
        let ((family, table), chain) = base;
        format!("{family} {table} {}", word(&chain["name"]))
    };
    let has_rules = |base: &&(TableName, &Value)| {
        let key = (base.0.clone(), word(&base.1["name"]));
        chains.contains_key(&key)
    };
    let at_hook = |hook: &str| {
        let mut at = bases.iter().filter(|base| base.1["hook"] == hook);
        at.find(has_rules)
    };
    let base = match chain {
        Some(name) => bases
            .iter()
            .find(|base| base.1["name"] == name || full(base) == name),
        None => at_hook("input")
            .or_else(|| at_hook("forward"))
            .or(bases.first()),
    };
    let Some(base) = base else {
        let known = bases.iter().map(full).collect();
        let name = chain.unwrap_or("of type filter").to_owned();
        return Err(ImportError::NoChain(name, known));
    };
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
            let place = format!("chain {}", full(base));
            return Err(form(
                place,
                &format!("a table of ip, ip6 or inet, not {family}"),
            ));
        }
    }
    let name = word(&chain["name"]);
    let mut found = Imported {
        chain: full(base),
        set: RuleSet::default(),
        remarks: Vec::new(),
    };
    let rules_of = |name: &str| {
        let rules = chains.get(&(table.clone(), name.to_owned()));
        rules.map(Vec::as_slice)
    };
    flatten(&name, &all, &rules_of, 0, &mut found)?;
    all.comment = format!("policy of {name}");
    found.set.rules.push(all);
    Ok(found)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A rule by its statements.
fn parse<'s>(
    expressions: &[Value],
    sets: &dyn Fn(&str) -> Option<&'s Value>,
    lost: &mut Vec<String>,
) -> Result<(Rule, Target), String> {
    let mut rule = Rule::new(Action::Pass);
    let mut target = None;
    for expression in expressions {
        let statement = expression.as_object().and_then(|it| it.iter().next());
        let (key, value) = statement.ok_or("an empty statement")?;
        let verdict = match &**key {
            "match" => {
                let asked = condition(value, sets)?;
                rule =
                    combine::combine(&rule, &asked).ok_or("its conditions exclude each other")?;
                continue;
            }
            "counter" | "comment" => continue,
            "log" => {
                lost.push("log: nothing is logged".to_owned());
                continue;
            }
            "accept" => Target::Verdict(Action::Pass),
            "drop" => Target::Verdict(Action::Drop),
            "reject" => {
                lost.push("reject becomes drop: no answer is sent".to_owned());
                Target::Verdict(Action::Drop)
            }
            "return" => Target::Return,
            "jump" => Target::Jump(word(&value["target"])),
            "goto" => Target::Goto(word(&value["target"])),
            other => return Err(format!("the statement {other}")),
        };
        target = Some(verdict);
    }
    match target {
        Some(target) => Ok((rule, target)),
        None => Err("it has no verdict: it only counts, and later rules decide".to_owned()),
    }
}

/// The rule for the packets that a match is true for.
fn condition<'s>(value: &Value, sets: &dyn Fn(&str) -> Option<&'s Value>) -> Result<Rule, String> {
    let is_negated = match value["op"].as_str() {
        Some("==" | "in") => false,
        Some("!=") => true,
        _ => return Err(format!("the comparison {}", value["op"])),
    };
    let left = &value["left"];
    let (protocol, field) = match (left.get("payload"), left.get("meta")) {
        (Some(payload), _) => (word(&payload["protocol"]), word(&payload["field"])),
        (None, Some(meta)) => ("meta".to_owned(), word(&meta["key"])),
        (None, None) => return Err(format!("a match of {left}")),
    };
    let items = items(&value["right"], sets)?;
    let mut rule = Rule::new(Action::Pass);
    let family = |protocol: &str| match protocol {
        "ip6" => Prefix::V6(0, 0),
        _ => Prefix::V4(0, 0),
    };
    let of_family = |rule: &mut Rule, protocol: &str| {
        // Addresses of both sides are of one family.
        if rule.source.is_any() {
            rule.source.prefixes.push(family(protocol));
        }
    };
    match (&*protocol, &*field) {
        ("ip" | "ip6", "saddr" | "daddr") => {
            let addresses = addresses(&items, is_negated, protocol == "ip6")?;
            match &*field {
                "saddr" => rule.source = addresses,
                _ => rule.destination = addresses,
            }
        }
        ("ip" | "ip6", "protocol" | "nexthdr") | ("meta", "l4proto") => {
            rule.protocols = protocols(&items, is_negated)?;
            if protocol != "meta" {
                of_family(&mut rule, &protocol);
            }
        }
        ("meta", "nfproto" | "protocol") if !is_negated => match &items[..] {
            [Value::String(name)] if matches!(&**name, "ipv4" | "ip") => {
                of_family(&mut rule, "ip");
            }
            [Value::String(name)] if matches!(&**name, "ipv6" | "ip6") => {
                of_family(&mut rule, "ip6");
            }
            _ => return Err(format!("meta {field} with {}", value["right"])),
        },
        ("tcp" | "udp" | "sctp" | "dccp" | "udplite" | "th", "sport" | "dport") => {
            rule.protocols.list = match protocol_number(&protocol) {
                Some(number) => vec![number],
                None => vec![6, 17, 33, 132, 136],
            };
            let ports = ports(&items, is_negated, &|_| None)?;
            match &*field {
                "sport" => rule.source_ports = ports,
                _ => rule.destination_ports = ports,
            }
        }
        ("icmp" | "icmpv6", "type" | "code") => {
            let is_v6 = protocol == "icmpv6";
            rule.protocols.list = vec![if is_v6 { 58 } else { 1 }];
            of_family(&mut rule, if is_v6 { "ip6" } else { "ip" });
            match &*field {
                "type" => {
                    rule.source_ports = ports(&items, is_negated, &|name| icmp_type(name, is_v6))?;
                }
                _ => rule.destination_ports = ports(&items, is_negated, &|_| None)?,
            }
        }
        _ => return Err(format!("a match of {protocol} {field}")),
    }
    Ok(rule)
}

/// The elements of what is on the right side of a match.
fn items<'s>(
    right: &Value,
    sets: &dyn Fn(&str) -> Option<&'s Value>,
) -> Result<Vec<Value>, String> {
    let list = match right {
        Value::String(name) if name.starts_with('@') => {
            let set = sets(&name[1..]).ok_or_else(|| format!("the set {name}"))?;
            set.as_array()
        }
        Value::Array(list) => Some(list),
        Value::Object(object) => match object.get("set") {
            Some(Value::Array(list)) => Some(list),
            Some(other) => return Ok(vec![other.clone()]),
            None => None,
        },
        _ => None,
    };
    let Some(list) = list else {
        return Ok(vec![right.clone()]);
    };
    if list.is_empty() {
        return Err("an empty set".to_owned());
    }
    // An element with a timeout or a comment is in an object of its own.
    let plain = |item: &Value| match item.get("elem") {
        Some(element) => element["val"].clone(),
        None => item.clone(),
    };
    Ok(list.iter().map(plain).collect())
}

fn addresses(items: &[Value], is_negated: bool, is_v6: bool) -> Result<Addresses, String> {
    let address = |text: &str| match (text.parse(), is_v6) {
        (Ok(std::net::IpAddr::V4(address)), false) => Ok(u128::from(u32::from(address))),
        (Ok(std::net::IpAddr::V6(address)), true) => Ok(u128::from(address)),
        _ => Err(format!("the address {text}")),
    };
    let width = if is_v6 { 128 } else { 32 };
    let mut prefixes = Vec::new();
    for item in items {
        let unknown = || format!("the address {item}");
        if let Some(text) = item.as_str() {
            let (text, bits) = match text.split_once('/') {
                Some((text, bits)) => (text, bits.parse().map_err(|_| unknown())?),
                None => (text, width),
            };
            prefixes.push(prefix(address(text)?, bits, is_v6).ok_or_else(unknown)?);
        } else if let Some(given) = item.get("prefix") {
            let bits = given["len"]
                .as_u64()
                .and_then(|bits| u8::try_from(bits).ok());
            let first = address(given["addr"].as_str().ok_or_else(unknown)?)?;
            let given = bits.and_then(|bits| prefix(first, bits, is_v6));
            prefixes.push(given.ok_or_else(unknown)?);
        } else if let Some([Value::String(first), Value::String(last)]) = item
            .get("range")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            let range = (address(first)?, address(last)?);
            combine::prefixes_of(range, is_v6, &mut prefixes);
        } else {
            return Err(unknown());
        }
    }
    Ok(Addresses {
        is_negated,
        prefixes,
    })
}

fn prefix(first: u128, bits: u8, is_v6: bool) -> Option<Prefix> {
    let whole = match is_v6 {
        true => Prefix::V6(first, bits),
        false => Prefix::V4(first as u32, bits),
    };
    let is_valid = bits <= if is_v6 { 128 } else { 32 };
    is_valid.then(|| match (whole, whole.range().0) {
        (Prefix::V4(_, bits), first) => Prefix::V4(first as u32, bits),
        (Prefix::V6(_, bits), first) => Prefix::V6(first, bits),
    })
}

fn protocols(items: &[Value], is_negated: bool) -> Result<Protocols, String> {
    let number = |item: &Value| {
        let number = match item {
            Value::Number(number) => number.as_u64().and_then(|it| u8::try_from(it).ok()),
            Value::String(name) => name.parse().ok().or_else(|| protocol_number(name)),
            _ => None,
        };
        number.ok_or_else(|| format!("the protocol {item}"))
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
            [first, last] => Ok((port(first)?, port(last)?)),
            _ => Err(format!("the range {item}")),
        },
        None => port(item).map(|port| (port, port)),
    };
    let ranges: Result<Vec<(u16, u16)>, String> = items.iter().map(range).collect();
    Ok(Ports {
        is_negated,
        ranges: ranges?,
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
