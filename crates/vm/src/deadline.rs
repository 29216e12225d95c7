//! The deadline of a run.

use std::time::Instant;

/// The time at which a run ends at the latest.
///
/// A run reads the clock once every [`interval`](Deadline::interval) units of fuel. A loop
/// iteration or a local call of a function that is not short consumes a unit. So a run ends
/// at most one interval after the deadline, and a run that consumes less always completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    interval: u32,
}

impl Deadline {
    /// Default interval of deadline checks, in units of fuel.
    pub const DEFAULT_INTERVAL: u32 = 4096;

    /// A deadline at this time.
    pub fn at(at: Instant) -> Deadline {
        let interval = Deadline::DEFAULT_INTERVAL;
        Deadline { at, interval }
    }

    /// The deadline with another interval of checks, at least 1.
    #[must_use]
    pub fn checking_every(self, interval: u32) -> Deadline {
        let interval = interval.max(1);
        Deadline { interval, ..self }
    }

    /// Units of fuel between two deadline checks, at least 1.
    pub fn interval(self) -> u32 {
        self.interval
    }

    /// Reads the clock; true if the deadline has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }
}
