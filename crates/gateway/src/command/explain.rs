//! `beebox-gateway explain`: which rule decides about a packet, and why.

use std::path::PathBuf;

use beebox::internal::bytes::ByteSource;
use gateway::{Compiled, Field, Header, Packet, RuleSet};

use super::input;
use command::answer::{Answer, Failure};
use command::answer_format::{AnswerFormat, FormatArgs, count};
use command::input::check_streams;
use command::input::read_source;
use command::output_path::OutputArg;
use command::stdout::write_folded;

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
    #[arg(long, value_name = "SOURCE")]
    packet: String,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,
}

/// Bytes of an Ethernet header.
const ETHERNET_HEADER: usize = 14;

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path([args.rules.as_path()])?;
    let (set, _) = input::read_set(&args.rules)?;
    let header = match Packet::is_text(&args.packet) {
        true => {
            let packet: Result<Packet, _> = args.packet.parse();
            Header::Ip(packet.map_err(|error| wrong_packet(&error.to_string()))?)
        }
        false => {
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
            AnswerFormat::Text => format!("{}\n", set.rule_text(rule)),
            AnswerFormat::Json => {
                let action = set.action(rule).to_string();
                format!("{}\n", serde_json::json!({"rule": 0, "action": action}))
            }
        };
        write_folded(args.format.format(), &text, output)?;
        return Ok(Answer::Yes);
    };
    let text = match args.format.format() {
        AnswerFormat::Text => text(&set, &compiled, &packet, rule),
        AnswerFormat::Json => json(&set, &compiled, &packet, rule),
    };
    write_folded(args.format.format(), &text, output)?;
    Ok(Answer::Yes)
}

fn wrong_packet(what: &str) -> Failure {
    Failure::new(format_args!("--packet: {what}"))
        .hint("proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80")
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
    let mut text = format!("{}\n{}\n\n", packet, set.rule_text(rule));
    for (field, rules) in Field::ALL.into_iter().zip(&matching) {
        text += &format!(
            "{:<20} {:<20} {:>5} of {} match: {}\n",
            field.name(),
            packet.field_text(field),
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
                "field": field.name(), "text": packet.field_text(field), "rule_numbers": rules,
            })
        })
        .collect();
    let answer = serde_json::json!({
        "packet_text": packet.to_string(),
        "rule": rule,
        "action": set.action(rule).to_string(),
        "fields": fields,
        "matching": common(&matching),
    });
    format!("{answer}\n")
}
