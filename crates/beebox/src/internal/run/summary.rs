//! Counts of the runs on a capture.
//!
//! Most programs return few values, so what a value means is looked up by the value first.
//! The clock of the machine takes as long to read as a short program runs: of many runs only
//! some are timed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ::kernel::programs::{PacketVerdict, verdict};
use spec::programs::ProgramType;

use super::Redirect;

/// Runs on the packets of a capture, by their verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Number of packets.
    pub packets: u64,
    /// Number of passed packets.
    pub kept: u64,
    /// The verdicts, in the order of their first packet.
    pub verdicts: Vec<VerdictCount>,
    /// Numbers of packets that were redirected, by where.
    pub redirects: BTreeMap<Redirect, u64>,
    /// Mean time of a run; zero if none was timed. The first run of a thread, which is cold, is
    /// not timed, the next 255 are, then each 127th.
    pub mean_duration: Duration,
}

/// Packets of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictCount {
    /// Name of the verdict.
    pub name: String,
    /// Number of packets.
    pub packets: u64,
    /// Their captured bytes.
    pub bytes: u64,
}

/// Values whose meaning is at hand.
const AT_HAND: usize = 16;

/// Counts packets by verdicts.
pub(super) struct Counter {
    kind: ProgramType,
    summary: CaptureSummary,
    /// Returned values by their last bits, with what they mean and the place of the count.
    at_hand: [Option<(u32, PacketVerdict, usize)>; AT_HAND],
}

impl Counter {
    pub(super) fn new(kind: ProgramType) -> Counter {
        Counter {
            kind,
            summary: CaptureSummary::default(),
            at_hand: [const { None }; AT_HAND],
        }
    }

    /// Counts a packet of so many bytes on which a run returned a value, and where it
    /// redirected it; what the value means.
    #[inline]
    pub(super) fn count(
        &mut self,
        retval: u32,
        bytes: usize,
        redirect: Option<Redirect>,
    ) -> &PacketVerdict {
        if let Some(redirect) = redirect {
            *self.summary.redirects.entry(redirect).or_default() += 1;
        }
        let slot = retval as usize % AT_HAND;
        if !matches!(&self.at_hand[slot], Some((known, ..)) if *known == retval) {
            let verdict = verdict(self.kind, retval);
            let place = place_of(&mut self.summary.verdicts, &verdict);
            self.at_hand[slot] = Some((retval, verdict, place));
        }
        let (_, verdict, place) = self.at_hand[slot].as_ref().expect("it was just set");
        let count = &mut self.summary.verdicts[*place];
        count.packets += 1;
        count.bytes += bytes as u64;
        self.summary.packets += 1;
        self.summary.kept += u64::from(verdict.kept.is_some());
        verdict
    }

    /// The counts, with the mean of what was timed.
    pub(super) fn finish(self, time: &Stopwatch) -> CaptureSummary {
        CaptureSummary {
            mean_duration: time.mean(),
            ..self.summary
        }
    }
}

/// The place of a verdict's count; there is one from now on.
fn place_of(counts: &mut Vec<VerdictCount>, verdict: &PacketVerdict) -> usize {
    let known = counts.iter().position(|count| count.name == verdict.name);
    known.unwrap_or_else(|| {
        counts.push(VerdictCount {
            name: verdict.name.clone().into_owned(),
            packets: 0,
            bytes: 0,
        });
        counts.len() - 1
    })
}

/// Runs that are all timed but the first, before only one of [`APART`] is.
const ALL: u64 = 256;

/// Runs from one that is timed to the next: a prime, so that traffic with a period has all its
/// packets timed.
const APART: u64 = 127;

/// Times some of many runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    runs: u64,
    timed: u64,
    time: Duration,
}

impl Stopwatch {
    /// Makes a run, and times it if it is its turn.
    #[inline]
    pub(super) fn run<R>(&mut self, run: impl FnOnce() -> R) -> R {
        self.runs += 1;
        if self.runs == 1 || self.runs > ALL && !self.runs.is_multiple_of(APART) {
            return run();
        }
        let start = Instant::now();
        let result = run();
        self.time += start.elapsed();
        self.timed += 1;
        result
    }

    /// One for the runs that follow, which has the times of none before.
    pub(super) fn continued(&self) -> Stopwatch {
        Stopwatch {
            runs: self.runs,
            ..Stopwatch::default()
        }
    }

    /// Takes the times of another one.
    pub(super) fn add(&mut self, other: Stopwatch) {
        self.runs += other.runs;
        self.timed += other.timed;
        self.time += other.time;
    }

    fn mean(&self) -> Duration {
        let nanoseconds = self.time.as_nanos() / u128::from(self.timed.max(1));
        Duration::from_nanos(nanoseconds as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_verdict_are_counted_together_and_keep_their_lengths() {
        let mut counter = Counter::new(ProgramType::SocketFilter);
        for retval in [20, 0, 4, 20, 36, 0] {
            let kept = (retval > 0).then_some(retval as usize);
            assert_eq!(counter.count(retval, 60, None).kept, kept);
        }
        let summary = counter.finish(&Stopwatch::default());
        let count = |name: &str, packets| VerdictCount {
            name: name.to_owned(),
            packets,
            bytes: 60 * packets,
        };
        assert_eq!(summary.verdicts, [count("keep", 4), count("drop", 2)]);
        assert_eq!((summary.packets, summary.kept), (6, 4));
    }

    #[test]
    fn some_runs_are_timed() {
        let mut time = Stopwatch::default();
        for _ in 0..ALL + 10 * APART {
            time.run(|| ());
        }
        assert_eq!(time.timed, ALL - 1 + 10);
    }
}
