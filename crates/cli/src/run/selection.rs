//! The packets of a capture that a run is on, and where packets go by their verdict.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use beebox::captures::FilterSource;
use beebox::internal::captures::Record;
use beebox::internal::program::ProgramType;
use beebox::internal::run::{RunCaptureError, verdict_names};
use beebox::{Expression, Metadata, Packet};

use crate::answer::Failure;
use crate::output_path::OutputPath;
use crate::program_input::filter_failure;

/// The options.
#[derive(clap::Args)]
pub(super) struct SelectionArgs {
    /// Run on these packets of the capture only: numbers as 17,20-30, or an expression of tcpdump
    #[arg(long, value_name = "PACKETS", requires = "pcap")]
    #[arg(conflicts_with_all = ["jobs", "expect", "why"])]
    only: Option<String>,

    /// Run on so many packets at most
    #[arg(short = 'c', long = "limit", value_name = "N", requires = "pcap")]
    #[arg(conflicts_with_all = ["jobs", "expect", "why"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,

    /// Write the packets of a verdict to a capture, as DROP=dropped.pcapng; may be given several
    /// times
    #[arg(long, value_name = "VERDICT=OUT", requires = "pcap")]
    #[arg(conflicts_with_all = ["jobs", "expect", "why"])]
    write: Vec<String>,
}

/// The packets that are chosen.
pub(super) enum Only {
    /// Those of these numbers.
    Numbers(Vec<RangeInclusive<u64>>),
    /// Those that match.
    Filter(Expression),
}

impl SelectionArgs {
    /// The packets of `--only`.
    pub(super) fn only(&self) -> Result<Option<Only>, Failure> {
        self.only.as_deref().map(Only::read).transpose()
    }

    /// Verdicts and files of `--write`.
    pub(super) fn outputs<'p>(
        &self,
        kind: ProgramType,
        inputs: impl Iterator<Item = &'p Path>,
    ) -> Result<Vec<(String, PathBuf)>, Failure> {
        let inputs: Vec<&Path> = inputs.collect();
        let outputs = self.write.iter().map(|given| {
            let (verdict, path) = given.split_once('=').ok_or_else(|| {
                Failure::new(format_args!("--write {given}: it is no VERDICT=OUT"))
                    .hint("--write DROP=dropped.pcapng")
            })?;
            let path = Path::new(path);
            OutputPath::new(path, inputs.iter().copied())?.of_packets()?;
            Ok((verdict_of(kind, verdict, given)?, path.to_owned()))
        });
        outputs.collect()
    }
}

/// The name of a verdict, which may be given without its prefix.
fn verdict_of(kind: ProgramType, given: &str, option: &str) -> Result<String, Failure> {
    let names = verdict_names(kind);
    let wanted = given.to_ascii_uppercase();
    let is_it = |name: &&&str| **name == wanted || name.ends_with(&format!("_{wanted}"));
    match names.iter().find(is_it) {
        Some(name) => Ok((*name).to_owned()),
        None if names.is_empty() && given.parse::<i32>().is_ok() => Ok(given.to_owned()),
        None => {
            let what = format_args!("--write {option}: {} has no verdict {given}", kind.name());
            let failure = Failure::new(what);
            Err(match names.is_empty() {
                true => failure.hint("the number that the program returns"),
                false => failure.hint(format_args!("one of {}", names.join(", "))),
            })
        }
    }
}

impl Only {
    fn read(text: &str) -> Result<Only, Failure> {
        let is_list = text.starts_with(|first: char| first.is_ascii_digit())
            && text
                .chars()
                .all(|each| each.is_ascii_digit() || matches!(each, ',' | '-' | ' '));
        if !is_list {
            let expression = Expression::new(text).map_err(|error| filter_failure(&error))?;
            return Ok(Only::Filter(expression));
        }
        let ranges = text.split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Ok(first..=last),
                _ => Err(Failure::new(format_args!(
                    "--only {text}: {range:?} is no packet from 1 on"
                ))
                .hint("--only 17,20-30")),
            }
        });
        ranges.collect::<Result<_, _>>().map(Only::Numbers)
    }

    /// True for a packet that is chosen.
    pub(super) fn has(&self, packet: u64, record: &Record<'_>) -> Result<bool, RunCaptureError> {
        match self {
            Only::Numbers(ranges) => Ok(ranges.iter().any(|range| range.contains(&packet))),
            Only::Filter(expression) => {
                let filter = expression.for_interface(record.interface());
                let filter = filter.map_err(|error| RunCaptureError::Filter(error.to_string()))?;
                let bytes = Packet::captured(record.data(), record.wire_len(), &Metadata::UNKNOWN);
                let value = filter.runner().run(&bytes);
                value
                    .map(|value| value != 0)
                    .map_err(|error| RunCaptureError::Filter(error.to_string()))
            }
        }
    }
}
