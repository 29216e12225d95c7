//! The limits of a run: a number of backward jumps, and a deadline.
//!
//! Engines count down and call a cold function when the count is exhausted, so a backward
//! jump costs one subtraction whatever the limits are. With a deadline the count is given
//! out in slices, and the clock is read between two of them. Local calls count for the
//! deadline only: eight frames deep, they can take long without a loop.

use crate::{Deadline, Outcome};

/// Remaining backward jumps and calls of a run.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Backward jumps until [`Meter::renew_jumps`] must be called; negative once the run
    /// is over.
    pub jumps: i64,
    /// Local calls until [`Meter::renew_calls`] must be called.
    pub calls: i64,
    /// Backward jumps of the limit beyond `jumps`.
    reserve: u64,
    deadline: Option<Deadline>,
    over: Option<Outcome>,
}

impl Meter {
    /// An exhausted meter.
    pub const EMPTY: Meter = Meter {
        jumps: 0,
        calls: 0,
        reserve: 0,
        deadline: None,
        over: None,
    };

    /// The meter of a run of at most `budget` backward jumps, until a deadline.
    #[inline(always)]
    pub fn new(budget: u64, deadline: Option<Deadline>) -> Meter {
        let fuel = fuel(deadline);
        let jumps = budget.min(fuel as u64);
        Meter {
            jumps: jumps as i64,
            calls: fuel,
            reserve: budget - jumps,
            deadline,
            over: None,
        }
    }

    /// Called for a backward jump when `jumps` is exhausted; true if it may be taken.
    #[cold]
    pub fn renew_jumps(&mut self) -> bool {
        if self.reserve == 0 {
            return self.end(Outcome::BudgetExhausted);
        }
        if self.has_passed() {
            return self.end(Outcome::DeadlinePassed);
        }
        let jumps = self.reserve.min(fuel(self.deadline) as u64);
        self.reserve -= jumps;
        self.jumps = jumps as i64 - 1;
        true
    }

    /// Called for a local call when `calls` is exhausted; true if it may be made.
    #[cold]
    pub fn renew_calls(&mut self) -> bool {
        if self.has_passed() {
            return self.end(Outcome::DeadlinePassed);
        }
        self.calls = fuel(self.deadline) - 1;
        true
    }

    /// True if a limit has ended the run.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.jumps < 0
    }

    /// The outcome of a run whose engine returned `r0`.
    #[inline(always)]
    pub fn outcome(&self, r0: u64) -> Outcome {
        match self.over {
            Some(outcome) if self.is_over() => outcome,
            _ => Outcome::Returned(r0),
        }
    }

    fn has_passed(&mut self) -> bool {
        self.deadline.as_mut().is_some_and(Deadline::has_passed)
    }

    fn end(&mut self, outcome: Outcome) -> bool {
        self.jumps = -1;
        self.over = Some(outcome);
        false
    }
}

/// Units of fuel until the next deadline check, at least 1.
#[inline(always)]
fn fuel(deadline: Option<Deadline>) -> i64 {
    deadline.map_or(i64::MAX, |deadline| deadline.interval().into())
}
