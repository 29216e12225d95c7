//! How long a run may go on: a budget of backward jumps, and a deadline.
//!
//! An engine counts down and asks when nothing is left: so a round costs one
//! subtraction, whatever limits there are. With a deadline the budget comes in
//! slices, and the clock is looked at when one is used up. Local calls count for
//! the deadline alone: eight frames deep, they can take long without any loop.

use crate::{Deadline, Outcome};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Backward jumps before [`Meter::renew_jumps`] is to be asked; below zero when
    /// the run is over.
    pub jumps: i64,
    /// Local calls before [`Meter::renew_calls`] is to be asked.
    pub calls: i64,
    /// What the budget holds beyond `jumps`.
    reserve: u64,
    deadline: Option<Deadline>,
    over: Option<Outcome>,
}

impl Meter {
    /// Nothing is left.
    pub const EMPTY: Meter = Meter {
        jumps: 0,
        calls: 0,
        reserve: 0,
        deadline: None,
        over: None,
    };

    /// For a run of at most so many backward jumps, until a deadline.
    #[inline(always)]
    pub fn new(budget: u64, deadline: Option<Deadline>) -> Meter {
        let rounds = rounds(deadline);
        let jumps = budget.min(rounds as u64);
        Meter {
            jumps: jumps as i64,
            calls: rounds,
            reserve: budget - jumps,
            deadline,
            over: None,
        }
    }

    /// Asked for one more backward jump when none is left; whether it may be taken.
    #[cold]
    pub fn renew_jumps(&mut self) -> bool {
        if self.reserve == 0 {
            return self.end(Outcome::BudgetExhausted);
        }
        if self.has_passed() {
            return self.end(Outcome::DeadlinePassed);
        }
        let jumps = self.reserve.min(rounds(self.deadline) as u64);
        self.reserve -= jumps;
        self.jumps = jumps as i64 - 1;
        true
    }

    /// Asked for one more local call when none is left; whether it may be made.
    #[cold]
    pub fn renew_calls(&mut self) -> bool {
        if self.has_passed() {
            return self.end(Outcome::DeadlinePassed);
        }
        self.calls = rounds(self.deadline) - 1;
        true
    }

    /// Whether the run was ended.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.jumps < 0
    }

    /// How a run ended whose program returned this, if it did.
    #[inline(always)]
    pub fn outcome(&self, r0: u64) -> Outcome {
        match self.over {
            Some(outcome) if self.is_over() => outcome,
            _ => Outcome::Returned(r0),
        }
    }

    fn has_passed(&self) -> bool {
        self.deadline.is_some_and(Deadline::has_passed)
    }

    fn end(&mut self, outcome: Outcome) -> bool {
        self.jumps = -1;
        self.over = Some(outcome);
        false
    }
}

/// Rounds before a look at the deadline, 1 or more.
#[inline(always)]
fn rounds(deadline: Option<Deadline>) -> i64 {
    deadline.map_or(i64::MAX, |deadline| deadline.rounds().into())
}
