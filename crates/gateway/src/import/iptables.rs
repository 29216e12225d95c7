//! The output of `iptables-save` and `ip6tables-save`: the table `filter`.

use std::collections::BTreeMap;

use super::{ChainRule, ImportError, Imported, Target, combine, flatten};
use crate::rules::{Action, Addresses, Ports, Prefix, Protocols, Rule, RuleSet, protocol_number};

/// Imports a chain with a policy, as INPUT; without a name INPUT if it has rules, otherwise
/// FORWARD. Packets of the other family pass.
///
/// # Errors
/// For text of another form, and if there is no such chain.
pub fn iptables_save(text: &str, chain: Option<&str>) -> Result<Imported, ImportError> {
    let mut table = String::new();
    let mut policies: BTreeMap<String, Action> = BTreeMap::new();
    let mut chains: BTreeMap<String, Vec<ChainRule>> = BTreeMap::new();
    let mut is_v6 = text.contains("ip6tables-save");
    is_v6 |= text.lines().any(|line| line.contains("-p ipv6-icmp"));
    for (number, line) in text.lines().enumerate() {
        let place = || format!("line {}", number + 1);
        let form = |expected: &str| ImportError::Form(place(), expected.to_owned());
        let line = line.trim();
        if let Some(name) = line.strip_prefix('*') {
            name.clone_into(&mut table);
        } else if line.is_empty() || line.starts_with('#') || line == "COMMIT" || table != "filter"
        {
            let is_known = line.is_empty()
                || ["#", "COMMIT", ":", "-"]
                    .iter()
                    .any(|it| line.starts_with(it))
                || line.starts_with('[');
            if !is_known {
                return Err(form(
                    "a line of iptables-save: *TABLE, :CHAIN, -A or COMMIT",
                ));
            }
        } else if let Some(declared) = line.strip_prefix(':') {
            let mut words = declared.split_whitespace();
            let name = words.next().ok_or_else(|| form(":CHAIN POLICY"))?;
            match words.next() {
                Some("ACCEPT") => drop(policies.insert(name.to_owned(), Action::Pass)),
                Some("DROP") => drop(policies.insert(name.to_owned(), Action::Drop)),
                Some("-") => {}
                _ => return Err(form(":CHAIN with ACCEPT, DROP or -")),
            }
            chains.entry(name.to_owned()).or_default();
        } else {
            // Counters of a rule may stand in front: [packets:bytes].
            let rule = match line.strip_prefix('[') {
                Some(rest) => rest.split_once("] ").map_or("", |(_, rule)| rule),
                None => line,
            };
            let words = words(rule).ok_or_else(|| form("closed quotation marks"))?;
            match &words[..] {
                [add, name, rest @ ..] if add == "-A" => {
                    let mut lost = Vec::new();
                    let parsed = parse(rest, is_v6, &mut lost);
                    chains.entry(name.clone()).or_default().push(ChainRule {
                        place: place(),
                        text: rule.to_owned(),
                        parsed,
                        lost,
                    });
                }
                _ => return Err(form("-A CHAIN")),
            }
        }
    }
    let has_rules = |name: &str| chains.get(name).is_some_and(|rules| !rules.is_empty());
    let chain = match chain {
        Some(chain) => chain,
        None if has_rules("INPUT") || !has_rules("FORWARD") => "INPUT",
        None => "FORWARD",
    };
    let Some(policy) = policies.get(chain) else {
        let known = policies.into_keys().collect();
        return Err(ImportError::NoChain(chain.to_owned(), known));
    };
    let mut found = Imported {
        chain: chain.to_owned(),
        set: RuleSet::default(),
        remarks: Vec::new(),
    };
    let mut all = Rule::new(policy.clone());
    let everything = if is_v6 {
        Prefix::V6(0, 0)
    } else {
        Prefix::V4(0, 0)
    };
    all.destination.prefixes.push(everything);
    let rules_of = |name: &str| chains.get(name).map(Vec::as_slice);
    flatten(chain, &all, &rules_of, 0, &mut found)?;
    all.comment = format!("policy of {chain}");
    found.set.rules.push(all);
    Ok(found)
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

/// A rule by its words.
fn parse(words: &[String], is_v6: bool, lost: &mut Vec<String>) -> Result<(Rule, Target), String> {
    let mut rule = Rule::new(Action::Pass);
    let mut target = None;
    let mut words = words.iter().map(String::as_str);
    let mut is_negated = false;
    while let Some(word) = words.next() {
        if word == "!" {
            is_negated = true;
            continue;
        }
        let negated = std::mem::take(&mut is_negated);
        let mut value = || words.next().ok_or(format!("{word} without a value"));
        match word {
            "-p" | "--protocol" => rule.protocols = protocol(value()?, negated)?,
            "-s" | "--source" | "--src" => rule.source = addresses(value()?, negated, is_v6)?,
            "-d" | "--destination" | "--dst" => {
                rule.destination = addresses(value()?, negated, is_v6)?;
            }
            "--src-range" => rule.source = range(value()?, negated, is_v6)?,
            "--dst-range" => rule.destination = range(value()?, negated, is_v6)?,
            "--sport" | "--source-port" | "--sports" | "--source-ports" => {
                rule.source_ports = ports(value()?, negated)?;
            }
            "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
                rule.destination_ports = ports(value()?, negated)?;
            }
            "--icmp-type" | "--icmpv6-type" => {
                let kind = value()?;
                if negated && kind.contains('/') {
                    return Err(format!("! {word} {kind}: all but a type with a code"));
                }
                icmp(&mut rule, kind, negated)?;
            }
            "--comment" => value()?.clone_into(&mut rule.comment),
            "-m" | "--match" => match value()? {
                "tcp" | "udp" | "sctp" | "dccp" | "udplite" | "icmp" | "icmp6" | "icmpv6"
                | "multiport" | "comment" | "iprange" => {}
                other => return Err(format!("the match {other}")),
            },
            "--reject-with" => drop(value()?),
            "-j" | "--jump" => {
                target = Some(match value()? {
                    "ACCEPT" => Target::Verdict(Action::Pass),
                    "DROP" => Target::Verdict(Action::Drop),
                    "REJECT" => {
                        lost.push("REJECT becomes drop: no answer is sent".to_owned());
                        Target::Verdict(Action::Drop)
                    }
                    "RETURN" => Target::Return,
                    other @ ("LOG" | "NFLOG" | "ULOG" | "MARK" | "CONNMARK" | "QUEUE"
                    | "NFQUEUE" | "TRACE" | "AUDIT" | "SET" | "CT") => {
                        return Err(format!("the target {other}"));
                    }
                    chain => Target::Jump(chain.to_owned()),
                });
            }
            "-g" | "--goto" => target = Some(Target::Goto(value()?.to_owned())),
            other => return Err(format!("the option {other}")),
        }
        if negated && matches!(word, "-j" | "-m" | "-g" | "--comment") {
            return Err(format!("! {word}"));
        }
    }
    let has_ports = !rule.source_ports.is_any() || !rule.destination_ports.is_any();
    if has_ports && !rule.protocols.have_ports() && !rule.protocols.have_types() {
        return Err("ports without a protocol that has them".to_owned());
    }
    match target {
        Some(target) => Ok((rule, target)),
        None => Err("it has no target: it only counts, and later rules decide".to_owned()),
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

/// A prefix, with a mask in either form.
fn addresses(text: &str, is_negated: bool, is_v6: bool) -> Result<Addresses, String> {
    let unknown = || format!("the address {text}");
    let prefixes = text.split(',').map(|text| {
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let bits = |width: u8| match mask {
            None => Ok(width),
            Some(mask) => match (mask.parse(), mask.parse::<std::net::Ipv4Addr>()) {
                (Ok(bits), _) if bits <= width => Ok(bits),
                (_, Ok(mask)) => {
                    let mask = u32::from(mask);
                    let is_prefix = mask.leading_ones() == mask.count_ones();
                    let bits = mask.leading_ones() as u8;
                    is_prefix.then_some(bits).ok_or_else(unknown)
                }
                _ => Err(unknown()),
            },
        };
        let prefix = match (address.parse::<std::net::IpAddr>(), is_v6) {
            (Ok(std::net::IpAddr::V4(address)), false) => Prefix::V4(address.into(), bits(32)?),
            (Ok(std::net::IpAddr::V6(address)), true) => Prefix::V6(address.into(), bits(128)?),
            _ => return Err(unknown()),
        };
        // iptables keeps bits behind the mask away; so do we.
        let (first, _) = prefix.range();
        Ok(match prefix {
            Prefix::V4(_, bits) => Prefix::V4(first as u32, bits),
            Prefix::V6(_, bits) => Prefix::V6(first, bits),
        })
    });
    let prefixes: Result<Vec<Prefix>, String> = prefixes.collect();
    Ok(Addresses {
        is_negated,
        prefixes: prefixes?,
    })
}

/// A range of addresses.
fn range(text: &str, is_negated: bool, is_v6: bool) -> Result<Addresses, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let bound = |text: &str| -> Result<u128, String> {
        let found = addresses(text, false, is_v6)?;
        Ok(found.prefixes[0].range().0)
    };
    let range = (bound(first)?, bound(last)?);
    let mut prefixes = Vec::new();
    combine::prefixes_of(range, is_v6, &mut prefixes);
    match prefixes.is_empty() {
        true => Err(format!("the range {text}")),
        false => Ok(Addresses {
            is_negated,
            prefixes,
        }),
    }
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
    let ranges: Result<Vec<(u16, u16)>, String> = ranges.collect();
    Ok(Ports {
        is_negated,
        ranges: ranges?,
    })
}

/// `TYPE` or `TYPE/CODE` in numbers, as iptables-save prints them.
fn icmp(rule: &mut Rule, text: &str, is_negated: bool) -> Result<(), String> {
    if matches!(text, "any" | "255") && !is_negated {
        return Ok(());
    }
    let unknown = || format!("the ICMP type {text}");
    let (kind, code) = match text.split_once('/') {
        Some((kind, code)) => (kind, Some(code)),
        None => (text, None),
    };
    let number = |text: &str| text.parse::<u8>().map(u16::from).map_err(|_| unknown());
    let kind = number(kind)?;
    rule.source_ports = Ports {
        is_negated,
        ranges: vec![(kind, kind)],
    };
    if let Some(code) = code {
        let code = number(code)?;
        rule.destination_ports.ranges = vec![(code, code)];
    }
    Ok(())
}
