//! Limits of a run: instructions, frames and time.

use std::time::{Duration, Instant};

use beebox::internal::raw::{Limits, MOST_FRAMES};

/// What is said of a run that the time limit ended.
pub(crate) const TIMED_OUT: &str = "the time limit of --timeout has passed";

/// The options.
#[derive(clap::Args)]
pub(crate) struct LimitArgs {
    /// Most instructions of the run, in the checked engine [default: 100000000]
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<u64>,

    /// Most seconds of all runs together; exit code 1 when they pass [default: none, and of native
    /// code of an object 10 seconds of each run]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Most stack frames at once, in the checked engine [default: 8]
    #[arg(long, value_name = "N", value_parser = frames)]
    pub(crate) frames: Option<usize>,
}

impl LimitArgs {
    /// The limits of a run that starts now.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            instructions: self.budget.unwrap_or(Limits::default().instructions),
            frames: self.frames.unwrap_or(Limits::default().frames),
            deadline: self.timeout.map(|timeout| Instant::now() + timeout),
            ..Limits::default()
        }
    }
}

pub(crate) fn frames(text: &str) -> Result<usize, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=MOST_FRAMES).contains(number));
    number.ok_or_else(|| format!("{text} is not in 1..={MOST_FRAMES}"))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // A deadline further away than this is none.
    const LONGEST: Duration = Duration::from_secs(1 << 32);
    duration
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| format!("{text:?} is no number of seconds"))
}
