//! A job: makes inputs, runs them, and keeps what is new.

use std::time::{Duration, Instant};

use super::executor::{Executor, Violation};
use super::input::FuzzInput;
use super::mutator::Mutator;
use super::packets::MOST_BYTES;
use super::random::Chooser;
use crate::internal::run::Compared;

/// An input that is kept.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) input: FuzzInput,
    /// Numbers that its runs compared.
    pub(super) compared: Vec<Compared>,
    /// It executed nothing new: it left something new in maps.
    pub(super) is_by_state: bool,
}

/// An input that did what none before did: features and their classes.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) input: FuzzInput,
    pub(super) classes: Vec<(usize, u8)>,
}

/// What a job did in a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) runs: u64,
    pub(super) kept: Vec<Kept>,
    pub(super) found: Vec<(FuzzInput, Violation)>,
}

/// Looks at the clock often enough to end within [`Clock::LATE`], and seldom where inputs are short.
pub(super) struct Clock {
    end: Option<Instant>,
    last: Instant,
    /// Inputs until the next look, and from one to the next.
    left: u32,
    span: u32,
}

impl Clock {
    const MOST: u32 = 256;
    const LATE: Duration = Duration::from_millis(10);

    pub(super) fn new(end: Option<Instant>) -> Clock {
        Clock {
            end,
            last: Instant::now(),
            left: 1,
            span: 1,
        }
    }

    /// True if the end has come; called once for each input.
    #[inline]
    pub(super) fn is_over(&mut self) -> bool {
        let Some(end) = self.end else {
            return false;
        };
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        let now = Instant::now();
        self.span = match now - self.last {
            short if short < Self::LATE / 4 => (self.span * 2).min(Self::MOST),
            long if long > Self::LATE => (self.span / 8).max(1),
            _ => self.span,
        };
        (self.last, self.left) = (now, self.span);
        now >= end
    }
}

/// Which runs a job makes in a round.
pub(super) struct Share<'r> {
    pub(super) entries: &'r [Entry],
    pub(super) chooser: Chooser,
    /// Most runs.
    pub(super) runs: u64,
    pub(super) end: Option<Instant>,
}

/// Kept inputs to choose from: those that executed something new, and those that left something new in maps.
struct Choices<'r> {
    by_code: Vec<&'r Entry>,
    by_state: Vec<&'r Entry>,
}

impl<'r> Choices<'r> {
    fn new(entries: &'r [Entry]) -> Choices<'r> {
        let (by_state, by_code) = entries.iter().partition(|entry| entry.is_by_state);
        Choices { by_code, by_state }
    }

    /// One of them, newer ones more often.
    #[inline]
    fn choose(&self, chooser: &mut Chooser) -> Option<&'r Entry> {
        const NEW: usize = 24;
        let takes_state = self.by_code.is_empty() || chooser.one_in(4);
        let list = match takes_state && !self.by_state.is_empty() {
            true => &self.by_state,
            false => &self.by_code,
        };
        let newest = list.len().checked_sub(1)?;
        let place = match chooser.one_in(2) {
            true => newest - chooser.small(newest.min(NEW)),
            false => chooser.below(list.len()),
        };
        Some(list[place])
    }
}

/// Makes the runs of a job in a round. `seen` are the classes of features that were seen.
pub(super) fn work(
    executor: &mut Executor<'_, '_>,
    mutator: &mut Mutator,
    seen: &mut [u8],
    mut share: Share<'_>,
) -> Round {
    let mut round = Round::default();
    let mut input = FuzzInput::default();
    let mut classes: Vec<(usize, u8)> = Vec::new();
    let chooser = &mut share.chooser;
    let choices = Choices::new(share.entries);
    let mut clock = Clock::new(share.end);
    while round.runs < share.runs && !clock.is_over() {
        let entry = match chooser.one_in(64) {
            true => None,
            false => choices.choose(chooser),
        };
        match entry {
            None => mutator.generate(chooser, &mut input),
            Some(entry) => {
                input.copy(&entry.input);
                let matches = !entry.compared.is_empty() && chooser.one_in(4);
                if matches {
                    mutator.match_number(chooser, &mut input, &entry.compared);
                }
                if !matches || chooser.one_in(2) {
                    mutator.mutate(chooser, &mut input, share.entries, entry.is_by_state);
                }
            }
        }
        classes.clear();
        let violation = executor.run(&input, &mut round.runs, |feature, class| {
            if seen[feature] & class == 0 {
                seen[feature] |= class;
                classes.push((feature, class));
            }
        });
        if !classes.is_empty() {
            let mut steps = input.steps.iter();
            if steps.all(|step| step.packet.len() <= MOST_BYTES) {
                round.kept.push(Kept {
                    input: input.clone(),
                    classes: classes.clone(),
                });
            }
        }
        if let Some(violation) = violation {
            executor.skipped[violation.property] = true;
            round.found.push((input.clone(), violation));
        }
    }
    round
}
