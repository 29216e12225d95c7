//! Packets that are chosen by number or by an expression, and verdicts by the words that people type.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use spec::programs::ProgramType;

use super::{RunCaptureError, verdict_names};
use crate::internal::captures::{FilterSource, Record};
use crate::{Expression, FilterError, Metadata, Packet};

/// The packets that are chosen.
pub enum PacketChoice {
    /// Those of these numbers.
    Numbers(Vec<RangeInclusive<u64>>),
    /// Those that match.
    Filter(Expression),
}

/// Why a text chooses no packets.
#[derive(Debug)]
pub enum PacketChoiceError {
    /// A part of a list is no range of numbers from 1 on.
    Range {
        /// The list.
        list: String,
        /// The part.
        part: String,
    },
    /// It is no list, and no expression of tcpdump.
    Filter(FilterError),
}

impl fmt::Display for PacketChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketChoiceError::Range { list, part } => {
                write!(f, "{list}: {part:?} is no packet from 1 on")
            }
            PacketChoiceError::Filter(error) => error.fmt(f),
        }
    }
}

impl Error for PacketChoiceError {}

impl PacketChoice {
    /// Reads numbers as `17,20-30`, or an expression of tcpdump.
    ///
    /// # Errors
    /// If it is neither.
    pub fn read(text: &str) -> Result<PacketChoice, PacketChoiceError> {
        let is_list = text.starts_with(|first: char| first.is_ascii_digit())
            && text
                .chars()
                .all(|each| each.is_ascii_digit() || matches!(each, ',' | '-' | ' '));
        if !is_list {
            let expression = Expression::new(text).map_err(PacketChoiceError::Filter)?;
            return Ok(PacketChoice::Filter(expression));
        }
        let ranges = text.split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Ok(first..=last),
                _ => Err(PacketChoiceError::Range {
                    list: text.to_owned(),
                    part: range.to_owned(),
                }),
            }
        });
        ranges.collect::<Result<_, _>>().map(PacketChoice::Numbers)
    }

    /// True for a packet that is chosen.
    ///
    /// # Errors
    /// If the expression cannot be compiled for its interface, or not be run.
    pub fn has(&self, packet: u64, record: &Record<'_>) -> Result<bool, RunCaptureError> {
        match self {
            PacketChoice::Numbers(ranges) => Ok(ranges.iter().any(|range| range.contains(&packet))),
            PacketChoice::Filter(expression) => {
                let filter = expression.for_interface(record.interface());
                let filter = filter.map_err(|error| {
                    let what = "packets are chosen by numbers, as 17,20-30, or an expression";
                    RunCaptureError::Filter(format!("{what}: {error}"))
                })?;
                let bytes = Packet::captured(record.data(), record.wire_len(), &Metadata::UNKNOWN);
                let value = filter.runner().run(&bytes);
                value
                    .map(|value| value != 0)
                    .map_err(|error| RunCaptureError::Filter(error.to_string()))
            }
        }
    }
}

/// The name of a verdict as a word of the command line.
pub fn verdict_word(name: &str) -> String {
    name.replace(", ", "-")
}

/// The name of a verdict, which may be given without its prefix.
pub fn find_verdict(kind: ProgramType, given: &str) -> Option<&'static str> {
    let wanted = given.to_ascii_uppercase();
    let is_it = |name: &&&str| {
        let name = verdict_word(name).to_ascii_uppercase();
        name == wanted || name.ends_with(&format!("_{wanted}"))
    };
    verdict_names(kind).iter().find(is_it).copied()
}
