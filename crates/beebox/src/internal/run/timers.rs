//! Timers: the functions of programs that they call between runs.
//!
//! Before a run fire the timers whose time has come since the last one, after it those that
//! it started for a time that has passed. By the clock of captures, and a fixed one, each
//! finds its own time; by the real clock the time at which it fires.

use std::time::Instant;

use ::kernel::maps::RunGuard;
use vm::{FiredTimer, Outcome, Timers};

use super::checked::Start;
use super::compiled::FunctionCode;
use super::shared::Shared;
use super::{RunError, RunnableProgram};

/// Most calls between two runs: a timer that is started again for the same time whenever it
/// fires would go on for ever.
const MOST_CALLS: u64 = 1 << 20;

impl RunnableProgram<'_> {
    /// Fires the timers that are due by the clock, in the order of their times; returns the
    /// number of callbacks run. Each run of a program does so before and after by itself.
    ///
    /// # Errors
    /// [`RunError::Timers`] if callbacks start timers without end; those of runs.
    pub fn run_timers(&mut self) -> Result<u64, RunError> {
        match self.services.timers {
            Some(_) => self.run_timers_in(&mut RunGuard::new()),
            None => Ok(0),
        }
    }

    /// As [`RunnableProgram::run_timers`], with a guard that each call renews.
    #[inline]
    pub(super) fn run_timers_in(&mut self, guard: &mut RunGuard) -> Result<u64, RunError> {
        match self.services.timers {
            Some(timers) => self.fire_timers(timers, guard),
            None => Ok(0),
        }
    }

    fn fire_timers(&mut self, timers: &Timers, guard: &mut RunGuard) -> Result<u64, RunError> {
        let mut calls = 0;
        while let Some(timer) = timers.fire(self.services.nanoseconds()) {
            if calls == MOST_CALLS {
                return Err(RunError::Timers(calls));
            }
            if (self.limits.deadline).is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(RunError::Deadline);
            }
            guard.renew();
            self.call(timer, guard)?;
            calls += 1;
        }
        Ok(calls)
    }

    /// Calls the function of a timer.
    fn call(&mut self, timer: FiredTimer, guard: &RunGuard) -> Result<(), RunError> {
        let programs = &self.shared.programs;
        let Some(program) = programs.get(timer.callback.program as usize) else {
            return Ok(());
        };
        match program.callbacks.get(&timer.callback.slot) {
            Some(function) if !self.attached.needs_checked() => {
                self.call_unchecked(function, timer, guard)
            }
            Some(_) | None => {
                let run = self.run_checked(program, Start::Timer(timer), guard);
                run.map(drop)
            }
        }
    }

    fn call_unchecked(
        &mut self,
        function: &FunctionCode,
        timer: FiredTimer,
        guard: &RunGuard,
    ) -> Result<(), RunError> {
        let maps = self.shared.maps.iter().flatten().map(|map| &map.map);
        let mut maps = maps.filter(|map| map.handle().identity() == timer.map);
        let Some(map) = maps.next().map(|map| map.handle()) else {
            return Ok(());
        };
        // A value that another thread freed meanwhile is still there for the guard.
        let Some(entry) = map.operations().entry_at(guard, timer.address) else {
            return Ok(());
        };
        let deadline = self.run_deadline();
        let machine = &mut self.machine;
        let outcome = self.services.with_context(Some(timer), |mut cx| {
            function.call(machine, (map, entry), guard, cx.reborrow(), deadline)
        });
        match outcome? {
            Outcome::Returned(_) => Ok(()),
            Outcome::BudgetExhausted | Outcome::DeadlinePassed => Err(self.time_passed()),
        }
    }
}

impl Shared {
    /// The timers, if values of the maps, or of maps in them, have some.
    pub(super) fn used_timers(&self) -> Option<&Timers> {
        let mut maps = self.maps.iter().flatten();
        let has_some = maps.any(|map| map.map.handle().timers.is_some() || map.inner_has_timers);
        has_some.then_some(&*self.timers)
    }
}
