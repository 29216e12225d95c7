//! The deadline of a run.

use std::time::Instant;

/// The time at which a run ends at the latest.
///
/// A run reads the clock once every [`rounds`](Deadline::rounds) rounds. A round is an
/// iteration of a loop or a local call of a function that is not short. So a run ends at
/// most that many rounds after the deadline, and a run of fewer rounds always completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    rounds: u32,
}

impl Deadline {
    /// Rounds between two deadline checks by default.
    pub const ROUNDS: u32 = 4096;

    /// A deadline at this time.
    pub fn at(at: Instant) -> Deadline {
        let rounds = Deadline::ROUNDS;
        Deadline { at, rounds }
    }

    /// The same deadline with a check every so many rounds, at least 1.
    #[must_use]
    pub fn checking_every(self, rounds: u32) -> Deadline {
        let rounds = rounds.max(1);
        Deadline { rounds, ..self }
    }

    /// Rounds between two deadline checks, at least 1.
    pub fn rounds(self) -> u32 {
        self.rounds
    }

    /// Reads the clock; true if the deadline has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }
}
