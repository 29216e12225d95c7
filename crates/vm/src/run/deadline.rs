//! The deadline of a run.

use std::time::{Duration, Instant};

/// The time at which a run ends at the latest.
///
/// A run reads the clock once every [`interval`](Deadline::interval) units of fuel. A loop
/// iteration or a local call of a function that is not short consumes a unit. So a run ends
/// at most one interval after the deadline, and a run that consumes less always completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    end: End,
    interval: u32,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    At(Instant),
    /// So long after the first check: runs that consume less fuel read no clock.
    After(Duration),
}

impl Deadline {
    /// Default interval of deadline checks, in units of fuel.
    pub const DEFAULT_INTERVAL: u32 = 4096;

    /// A deadline at this time.
    pub fn at(at: Instant) -> Deadline {
        Deadline {
            end: End::At(at),
            interval: Deadline::DEFAULT_INTERVAL,
        }
    }

    /// A deadline this long after the first check of the run.
    pub fn after(time: Duration) -> Deadline {
        Deadline {
            end: End::After(time),
            interval: Deadline::DEFAULT_INTERVAL,
        }
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
    pub fn has_passed(&mut self) -> bool {
        let now = Instant::now();
        match self.end {
            End::At(at) => now >= at,
            End::After(time) => {
                // A time that no clock shows never comes.
                if let Some(at) = now.checked_add(time) {
                    self.end = End::At(at);
                }
                time.is_zero()
            }
        }
    }
}
