//! `beebox-gateway compile`.

use std::path::PathBuf;
use std::time::Instant;

use gateway::analysis::{self, BUDGET, Unreachable};
use gateway::{Addresses, Field, Prefix, Rule};

use super::input;
use command::answer::{Answer, Failure};
use command::answer_format::{AnswerFormat, FormatArgs, count};
use command::output_path::OutputPath;
use command::stdout::{print_answer, write_bytes};

/// Compile rules, and list those that decide about no packet
///
/// The exit code is 1 if a rule before makes another one superfluous.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway compile examples/gateway/office.rules
  beebox-gateway compile examples/gateway/office.rules -o office.state
  beebox-gateway compile examples/gateway/office.rules -j | jq .shadowed")]
pub(super) struct Args {
    /// The rules; `-` is standard input
    #[arg(value_name = "RULES")]
    rules: PathBuf,

    /// Write the compiled set
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Comparisons that the search for rules without packets may take
    #[arg(long, value_name = "N", default_value_t = BUDGET)]
    budget: u64,

    /// Only compile: list no rules
    #[arg(long)]
    no_analysis: bool,

    #[command(flatten)]
    format: FormatArgs,
}

/// A rule whose source and destination are of different families of addresses.
struct Mixed {
    rule: u32,
    source: &'static str,
    destination: &'static str,
}

impl Mixed {
    fn of((rule, it): (u32, &Rule)) -> Option<Mixed> {
        let (source, destination) = (family(&it.source)?, family(&it.destination)?);
        (source != destination).then_some(Mixed {
            rule,
            source,
            destination,
        })
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "rule": self.rule, "source_family": self.source, "destination_family": self.destination,
        })
    }
}

/// The family that all of these addresses have; `None` for both.
fn family(addresses: &Addresses) -> Option<&'static str> {
    let is_v4 = |prefix: &Prefix| matches!(prefix, Prefix::V4(..));
    let prefixes = &addresses.prefixes;
    match addresses.is_negated || prefixes.is_empty() {
        true => None,
        false if prefixes.iter().all(is_v4) => Some("IPv4"),
        false => (!prefixes.iter().any(is_v4)).then_some("IPv6"),
    }
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let output = OutputPath::optional(args.output.as_deref(), [args.rules.as_path()])?;
    let (set, _) = input::read_set(&args.rules)?;
    let start = Instant::now();
    let compiled = input::compile(&set, &args.rules)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    if output.is_some() {
        let bytes = gateway::write_state(&set, compiled.table());
        write_bytes(&bytes, output)?;
    }
    let unreachable = match args.no_analysis {
        true => Unreachable::default(),
        false => analysis::unreachable(&set, &compiled, args.budget),
    };
    let shadowed = &unreachable.shadowed;
    let mixed: Vec<Mixed> = (1..).zip(&set.rules).filter_map(Mixed::of).collect();
    // All of them are in ascending order.
    let is_mixed = |rule: u32| mixed.binary_search_by_key(&rule, |it| it.rule).is_ok();
    let is_shadowed = |rule: u32| shadowed.binary_search_by_key(&rule, |it| it.rule).is_ok();
    let by_union = unreachable.rules.iter().filter(|rule| !is_shadowed(**rule));
    let by_union: Vec<u32> = by_union.copied().collect();
    let sizes = compiled.sizes();
    let text = match args.format.format() {
        AnswerFormat::Json => {
            let classes: serde_json::Map<_, _> = Field::ALL
                .iter()
                .zip(sizes.classes)
                .map(|(field, count)| (field.name().replace(' ', "_"), count.into()))
                .collect();
            let shadowed: Vec<_> = shadowed
                .iter()
                .map(|it| serde_json::json!({"rule": it.rule, "by": it.by}))
                .collect();
            let answer = serde_json::json!({
                "rule_count": sizes.rules,
                "classes": classes,
                "blocks": sizes.blocks,
                "bytes_used": sizes.used,
                "bytes": sizes.table,
                "cache": sizes.key_bits.is_some(),
                "compile_ms": milliseconds,
                "shadowed": shadowed,
                "unreachable": by_union,
                "mixed_families": mixed.iter().map(Mixed::json).collect::<Vec<_>>(),
                "not_decided": unreachable.undecided,
            });
            format!("{answer}\n")
        }
        AnswerFormat::Text => {
            let rules = count(sizes.rules, "rule");
            let mut text = format!("{rules}, compiled in {milliseconds:.1} ms\n");
            for (field, number) in Field::ALL.iter().zip(sizes.classes) {
                let classes = if number == 1 { "class" } else { "classes" };
                text += &format!("{:<20} {number:>7} {classes}\n", field.name());
            }
            text += &format!(
                "{} of 512 rules; table of {} KiB, of which {} are used; cache {}\n",
                count(sizes.blocks, "block"),
                sizes.table >> 10,
                sizes.used.div_ceil(1024),
                match sizes.key_bits {
                    Some(bits) => format!("with keys of {bits} bits"),
                    None => "off: the classes do not fit its keys".to_owned(),
                }
            );
            for it in &mixed {
                text += &format!(
                    "rule {} decides about no packet: its source is {}, its destination {}\n",
                    it.rule, it.source, it.destination
                );
            }
            for it in shadowed.iter().filter(|it| !is_mixed(it.rule)) {
                text += &format!(
                    "rule {} decides about no packet: rule {} matches all that it matches\n",
                    it.rule, it.by
                );
            }
            for rule in by_union.iter().filter(|rule| !is_mixed(**rule)) {
                text += &format!(
                    "rule {rule} decides about no packet: the rules before it together match all that it matches\n"
                );
            }
            if let Some(first) = unreachable.undecided.first() {
                text += &format!(
                    "not decided within the budget of {} comparisons: {} from rule {first} on\n",
                    args.budget,
                    count(unreachable.undecided.len(), "rule")
                );
            }
            text
        }
    };
    // The compiled set takes standard output if it is written there.
    if !output.is_some_and(OutputPath::is_standard) {
        print_answer(args.format.format(), &text)?;
    }
    Ok(
        match shadowed.is_empty() && by_union.is_empty() && mixed.is_empty() {
            true => Answer::Yes,
            false => Answer::No,
        },
    )
}
