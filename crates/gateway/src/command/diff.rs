//! `beebox-gateway diff`: the traffic that two sets treat differently.

use std::path::PathBuf;

use gateway::analysis::{self, BUDGET};

use super::input;
use command::answer::{Answer, Failure};
use command::answer_format::{AnswerFormat, FormatArgs};
use command::input::check_streams;
use command::output_path::OutputArg;
use command::stdout::write_folded;

/// List the traffic whose action changes from one set of rules to another
///
/// For each pair of an old and a new rule with different actions one packet that the one and
/// the other decide about. The exit code is 1 if there is a change.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway diff examples/gateway/office.rules examples/gateway/new.rules")]
pub(super) struct Args {
    /// The rules before; `-` is standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The rules after; `-` is standard input
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Comparisons that the search may take
    #[arg(long, value_name = "N", default_value_t = BUDGET)]
    budget: u64,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let files = [args.old.as_path(), args.new.as_path()];
    check_streams(files)?;
    let output = args.output.path(files)?;
    let (old, _) = input::read_set(&args.old)?;
    let (new, _) = input::read_set(&args.new)?;
    let compiled = [
        input::compile(&old, &args.old)?,
        input::compile(&new, &args.new)?,
    ];
    let found = analysis::changes((&old, &compiled[0]), (&new, &compiled[1]), args.budget);
    let general = [
        ("other", &old.other, &new.other),
        ("malformed", &old.malformed, &new.malformed),
    ];
    let general = general.into_iter().filter(|(_, old, new)| old != new);
    let general: Vec<_> = general.collect();
    let text = match args.format.format() {
        AnswerFormat::Json => {
            let changes: Vec<_> = found
                .changes
                .iter()
                .map(|change| {
                    serde_json::json!({
                        "old_rule": change.old,
                        "new_rule": change.new,
                        "old_action": old.action(change.old).to_string(),
                        "new_action": new.action(change.new).to_string(),
                        "packet_text": change.example.to_string(),
                    })
                })
                .collect();
            let general: Vec<_> = general
                .iter()
                .map(|(what, old, new)| {
                    serde_json::json!({
                        "packet_class": what, "old_action": old.to_string(), "new_action": new.to_string(),
                    })
                })
                .collect();
            let answer = serde_json::json!({
                "changes": changes, "general": general, "decided": !found.is_undecided,
            });
            format!("{answer}\n")
        }
        AnswerFormat::Text => {
            let mut text = String::new();
            for change in &found.changes {
                text += &format!(
                    "{}\n  was: {}\n  now: {}\n",
                    change.example,
                    old.rule_text(change.old),
                    new.rule_text(change.new),
                );
            }
            for (what, old, new) in &general {
                text += &format!("{what} packets\n  was: {old}\n  now: {new}\n");
            }
            if found.is_undecided {
                text += &format!(
                    "not decided whether more changes, within the budget of {} comparisons\n",
                    args.budget
                );
            } else if found.changes.is_empty() && general.is_empty() {
                text += "no traffic changes\n";
            }
            text
        }
    };
    write_folded(args.format.format(), &text, output)?;
    let is_equal = found.changes.is_empty() && general.is_empty();
    match (is_equal, found.is_undecided) {
        (false, _) => Ok(Answer::No),
        (true, false) => Ok(Answer::Yes),
        (true, true) => Err(
            Failure::new("not decided within the budget").hint(format_args!(
                "--budget {}",
                args.budget.max(1_000).saturating_mul(100)
            )),
        ),
    }
}
