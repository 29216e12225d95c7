//! `beebox-gateway update`: other rules for a running `attach`.

use std::path::PathBuf;

use super::input::Interface;
use super::{control, input};
use command::answer::{Answer, Failure};
use command::answer_format::count;
use command::stdout::write_output;

/// Replace the rules of a running `beebox-gateway attach`
///
/// The rules are compiled here, and take the place of the old ones between two packets: each
/// packet is matched against the old set or the new one. Prints the hits of the old rules. A set
/// that does not fit is refused, as is a file without rules or without a newline at its end, and
/// the old set stays.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway update eth0 examples/gateway/new.rules")]
pub(super) struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,

    /// The new rules, as text or compiled; `-` is standard input
    #[arg(value_name = "RULES|STATE")]
    rules: PathBuf,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let interface = Interface::find(&args.interface)?;
    let rules = input::read_for_interface(&args.rules)?;
    let hits = control::replace(&interface, &rules.set, &rules.table)?;
    let rules = count(rules.set.rules.len(), "rule");
    diagnostic!("{rules} at {interface}");
    write_output(hits.as_bytes(), None)?;
    Ok(Answer::Yes)
}
