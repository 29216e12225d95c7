//! Until when a run may go on.

use std::time::Instant;

/// Until when a run may go on. A run looks at the clock every so many rounds: where
/// a loop begins anew, and where a function that is not short is entered by a local
/// call. So it ends that many rounds after the deadline at most, and a run of fewer
/// rounds is never ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    rounds: u32,
}

impl Deadline {
    /// Rounds between two looks at the clock, if nobody says otherwise: the looks
    /// cost less than 0.02 ns a round, and rounds of up to 250 ns (about a thousand
    /// instructions) end within a millisecond of the deadline.
    pub const ROUNDS: u32 = 4096;

    /// To end at this time.
    pub fn at(at: Instant) -> Deadline {
        let rounds = Deadline::ROUNDS;
        Deadline { at, rounds }
    }

    /// With a look every so many rounds; 0 means 1.
    #[must_use]
    pub fn looking_every(self, rounds: u32) -> Deadline {
        let rounds = rounds.max(1);
        Deadline { rounds, ..self }
    }

    /// Rounds between two looks, 1 or more.
    pub fn rounds(self) -> u32 {
        self.rounds
    }

    /// Looks at the clock.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }
}
