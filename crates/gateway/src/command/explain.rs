//! `beebox-gateway explain`: which rule decides about a packet, and why.

use std::path::PathBuf;

use beebox::internal::bytes::ByteSource;
use gateway::{
    Addresses, Compiled, Field, Header, Packet, Ports, Prefix, RuleSet, TransportHeader,
};

use super::input;
use command::answer::{Answer, Failure};
use command::answer_format::{AnswerFormat, FormatArgs, count};
use command::input::check_streams;
use command::input::read_source;
use command::stdout::print_answer;

/// Show the rule that matches a packet, and the rules that match each of its fields
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway explain examples/gateway/office.rules \\
      --packet 'proto udp from 10.0.0.1 port 4000 to 192.0.2.1 port 53'")]
pub(super) struct Args {
    /// The rules, as text or compiled; `-` is standard input
    #[arg(value_name = "RULES|STATE")]
    rules: PathBuf,

    /// An Ethernet frame in hexadecimal or a file, or the words of a rule for one packet:
    /// `proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80`
    #[arg(long, value_name = "PACKET")]
    packet: String,

    #[command(flatten)]
    format: FormatArgs,
}

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let (set, _) = input::read_set(&args.rules)?;
    let header = match in_words(&args.packet) {
        Some(packet) => Header::Ip(packet.map_err(|what| wrong_packet(&what))?),
        None => {
            let frame = ByteSource::parse(&args.packet)
                .map_err(|error| wrong_packet(&error.to_string()))?;
            check_streams([args.rules.as_path()].into_iter().chain(frame.path()))?;
            let frame = read_source(&frame)?;
            if frame.len() < ETHERNET_HEADER {
                let bytes = frame.len();
                let what =
                    format!("a frame of {bytes} bytes: an Ethernet header has {ETHERNET_HEADER}");
                return Err(wrong_packet(&what));
            }
            Header::of(&frame)
        }
    };
    let compiled = input::compile(&set, &args.rules)?;
    let rule = set.first_match(&header).rule;
    let Header::Ip(packet) = header else {
        let text = match args.format.format() {
            AnswerFormat::Text => format!("{}\n", input::describe_rule(&set, rule)),
            AnswerFormat::Json => {
                let action = set.action(rule).to_string();
                format!("{}\n", serde_json::json!({"rule": 0, "action": action}))
            }
        };
        print_answer(args.format.format(), &text)?;
        return Ok(Answer::Yes);
    };
    let text = match args.format.format() {
        AnswerFormat::Text => text(&set, &compiled, &packet, rule),
        AnswerFormat::Json => json(&set, &compiled, &packet, rule),
    };
    print_answer(args.format.format(), &text)?;
    Ok(Answer::Yes)
}

fn wrong_packet(what: &str) -> Failure {
    Failure::new(format_args!("--packet: {what}"))
        .hint("proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80")
}

/// A packet in the words of a rule; `None` for other text.
fn in_words(text: &str) -> Option<Result<Packet, String>> {
    let begins = ["proto ", "from ", "to "]
        .iter()
        .any(|word| text.starts_with(word));
    if !begins {
        return None;
    }
    Some(packet_of(text))
}

fn packet_of(text: &str) -> Result<Packet, String> {
    let set = RuleSet::parse(&format!("pass {text}")).map_err(|mut error| {
        error.column -= "pass ".len().min(error.column - 1);
        error.to_string()
    })?;
    let rule = set.rules.first().ok_or("no packet")?;
    let address = |addresses: &Addresses, side| match addresses.prefixes[..] {
        [Prefix::V4(address, 32)] if !addresses.is_negated => Ok(gateway::Address::V4(address)),
        [Prefix::V6(address, 128)] if !addresses.is_negated => Ok(gateway::Address::V6(address)),
        _ => Err(format!("expected one {side} address")),
    };
    let port = |ports: &Ports| match ports.ranges[..] {
        [] => Ok(None),
        [(first, last)] if first == last && !ports.is_negated => Ok(Some(first)),
        _ => Err("expected one port".to_owned()),
    };
    let protocol = match rule.protocols.list[..] {
        [protocol] if !rule.protocols.is_negated => protocol,
        _ => return Err("expected one protocol".to_owned()),
    };
    let source = address(&rule.source, "source")?;
    let destination = address(&rule.destination, "destination")?;
    let is_v6 = |address| matches!(address, gateway::Address::V6(_));
    if is_v6(source) != is_v6(destination) {
        return Err("expected addresses of one family".to_owned());
    }
    let ports = port(&rule.source_ports)?.zip(port(&rule.destination_ports)?);
    let is_half = rule.source_ports.is_any() != rule.destination_ports.is_any();
    if is_half {
        return Err("expected both ports (or type and code), or none".to_owned());
    }
    let header = match rule.headers.list[..] {
        [] => TransportHeader::of_ports(protocol, ports.is_some()),
        [header] => header,
        _ => return Err("expected one state of the header".to_owned()),
    };
    Ok(Packet {
        source,
        destination,
        protocol,
        header,
        source_port: ports.map(|(source, _)| source),
        destination_port: ports.map(|(_, destination)| destination),
    })
}

/// The value of a field in text.
fn value(packet: &Packet, field: Field) -> String {
    let port = |port: Option<u16>| match port {
        Some(port) => port.to_string(),
        None => "unknown".to_owned(),
    };
    match field {
        Field::Source => packet.source.to_string(),
        Field::Destination => packet.destination.to_string(),
        Field::Protocol => {
            let protocol = input::describe_protocol(packet);
            match packet.header {
                TransportHeader::Whole => protocol,
                header => format!("{protocol}, header {}", header.name()),
            }
        }
        Field::SourcePort => port(packet.source_port),
        Field::DestinationPort => port(packet.destination_port),
    }
}

/// Numbers of rules with ranges, at most so many of them.
fn list(rules: &[u32]) -> String {
    const MOST: usize = 12;
    let runs: Vec<&[u32]> = rules.chunk_by(|a, b| a + 1 == *b).collect();
    let mut words: Vec<String> = runs
        .iter()
        .take(MOST)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect();
    if runs.len() > MOST {
        words.push("…".to_owned());
    }
    words.join(", ")
}

fn text(set: &RuleSet, compiled: &Compiled, packet: &Packet, rule: u32) -> String {
    let matching = compiled.matching(packet);
    let mut text = format!(
        "{}\n{}\n\n",
        input::describe_packet(packet),
        input::describe_rule(set, rule)
    );
    for (field, rules) in Field::ALL.into_iter().zip(&matching) {
        text += &format!(
            "{:<20} {:<20} {:>5} of {} match: {}\n",
            field.name(),
            value(packet, field),
            rules.len(),
            count(set.rules.len(), "rule"),
            list(rules)
        );
    }
    let all = common(&matching);
    text += &format!(
        "{:<41} {:>5} match in all fields: {}\n",
        "",
        all.len(),
        list(&all)
    );
    text
}

/// Rules that match in all fields.
fn common(matching: &[Vec<u32>; 5]) -> Vec<u32> {
    let [first, others @ ..] = matching;
    let is_in_all = |rule: &&u32| others.iter().all(|it| it.binary_search(rule).is_ok());
    first.iter().filter(is_in_all).copied().collect()
}

fn json(set: &RuleSet, compiled: &Compiled, packet: &Packet, rule: u32) -> String {
    let matching = compiled.matching(packet);
    let fields: Vec<_> = Field::ALL
        .into_iter()
        .zip(&matching)
        .map(|(field, rules)| {
            serde_json::json!({
                "field": field.name(), "value": value(packet, field), "rules": rules,
            })
        })
        .collect();
    let answer = serde_json::json!({
        "packet": input::describe_packet(packet),
        "rule": rule,
        "action": set.action(rule).to_string(),
        "fields": fields,
        "matching": common(&matching),
    });
    format!("{answer}\n")
}
