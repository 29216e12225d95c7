//! Runs inputs and holds them to the properties.

use std::time::Instant;

use ::kernel::programs::PacketVerdict;
use interp::checked::Limits;
use object::Object;
use spec::helpers::HelperId;
use spec::programs::ProgramType;

use super::features::{STATE_FEATURES, class_of, state_feature};
use super::input::{FuzzInput, InputStep};
use super::property::{Condition, Holds, Property};
use crate::internal::expect::ExpectationKind;
use crate::internal::run::{
    Compared, LoadedObject, Marked, RunGuard, RunInput, RunRecord, RunnableProgram,
};
use crate::{Engine, FilterRunner};

/// A loaded object, and another one that has to do the same.
#[derive(Debug)]
pub struct FuzzTarget {
    pub(super) loaded: LoadedObject,
    pub(super) against: Option<LoadedObject>,
}

/// A property that a run does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// Place of the property.
    pub(super) property: usize,
    /// Place of the run in the input.
    pub(super) step: usize,
    /// What is wrong, in one line.
    pub(super) what: String,
    /// What a test expects there.
    pub(super) expects: Expects,
}

/// What a test expects of the run that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    /// Statements.
    Lines(Vec<String>),
    /// A second run on this packet, in front of these statements.
    Again(Vec<u8>, Vec<String>),
    /// This value of a key, or none.
    Element {
        map: String,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    /// Nothing that files can say.
    Nothing,
}

/// A value that programs returned.
pub(super) struct Known {
    pub(super) retval: u32,
    pub(super) verdict: PacketVerdict,
    /// Properties about verdicts that it may not have.
    pub(super) suspects: Vec<usize>,
}

/// One program with what runs it.
pub(super) struct Side<'w> {
    pub(super) loaded: &'w LoadedObject,
    marked: &'w Marked,
    pub(super) program: RunnableProgram<'w>,
    has_records: bool,
    /// It runs in the checked engine.
    is_checked: bool,
}

/// Runs inputs on a target.
pub(super) struct Executor<'w, 'o> {
    pub(super) object: &'w Object<'o>,
    pub(super) properties: &'w [Property],
    /// Those that were found already, or are not looked for.
    pub(super) skipped: Vec<bool>,
    pub(super) runners: Vec<Option<FilterRunner<'w>>>,
    pub(super) side: Side<'w>,
    pub(super) old: Option<Side<'w>>,
    pub(super) guard: RunGuard,
    pub(super) known: Vec<Known>,
    /// Counters of code, and instructions that each stands for.
    counters: usize,
    weights: &'w [u32],
    /// Some properties are about more than verdicts and instructions.
    looks_closer: bool,
    pub(super) is_seeded: bool,
    /// Time from which on an input of slow runs is left.
    end: Option<Instant>,
    /// Instructions of the runs until now.
    pub(super) instructions: u64,
}

/// Instructions of a run behind which the clock is looked at.
const SLOW: u64 = 1_000_000;

/// Most instructions of a run in the checked engine that tells what is compared.
const MOST_TOLD: u64 = 200_000;

impl<'w> Side<'w> {
    fn new(loaded: &'w LoadedObject, marked: &'w Marked, program: &str) -> Option<Side<'w>> {
        let place = loaded.program_place(program)?;
        let mut program = loaded.runnable_with_seed(place, 0, 0);
        program.collect_records(true);
        Some(Side {
            is_checked: program.engine() == Engine::Checked,
            loaded,
            marked,
            program,
            has_records: loaded.maps().any(|map| map.map.kind().has_records()),
        })
    }

    fn set(&self, input: &FuzzInput) {
        for element in &input.elements {
            if let Some(map) = self.loaded.map(&element.map) {
                // A map that is full, or takes no such key, stays as it is.
                let _ = map.update(&element.key, &element.value, 0);
            }
        }
    }

    pub(super) fn records(&self) -> Vec<RunRecord> {
        match self.has_records {
            true => self.program.records(),
            false => Vec::new(),
        }
    }
}

impl<'w, 'o> Executor<'w, 'o> {
    /// The executor of a target, whose maps were marked. `None` if a program is missing.
    pub(super) fn new(
        object: &'w Object<'o>,
        program: &str,
        properties: &'w [Property],
        target: &'w FuzzTarget,
        (marked, weights): (&'w [Marked], &'w [u32]),
    ) -> Option<Executor<'w, 'o>> {
        let side = Side::new(&target.loaded, marked.first()?, program)?;
        let old = match (&target.against, marked.get(1)) {
            (Some(old), Some(marked)) => Some(Side::new(old, marked, program)?),
            _ => None,
        };
        let runner = |property: &'w Property| match &property.0 {
            Holds::Never {
                condition: Some(Condition { filter, .. }),
                ..
            }
            | Holds::Always {
                condition: Some(Condition { filter, .. }),
                ..
            } => Some(filter.runner()),
            _ => None,
        };
        let looks_closer = properties.iter().any(|property| match &property.0 {
            Holds::Never { .. } | Holds::Always { .. } | Holds::Ends => false,
            Holds::Expect(expectation) => match expectation.kind() {
                ExpectationKind::Instructions | ExpectationKind::Value => false,
                ExpectationKind::Output | ExpectationKind::Maps => true,
            },
            Holds::Idempotent | Holds::Check(..) | Holds::Same => true,
        });
        Some(Executor {
            object,
            properties,
            skipped: vec![false; properties.len()],
            runners: properties.iter().map(runner).collect(),
            side,
            old,
            guard: RunGuard::new(),
            known: Vec::new(),
            counters: target.loaded.counters(),
            weights,
            looks_closer,
            is_seeded: target.loaded.calls(HelperId::returns_random),
            end: None,
            instructions: 0,
        })
    }

    /// The executor, which leaves inputs of slow runs from a time on.
    pub(super) fn until(mut self, end: Option<Instant>) -> Self {
        self.end = end;
        self
    }

    /// Number of features that inputs have.
    pub(super) fn features(loaded: &LoadedObject) -> usize {
        loaded.counters() + STATE_FEATURES
    }

    /// Runs an input; the first property that does not hold. `each` gets the features of the input and their
    /// classes. The number of runs is added to `runs`.
    pub(super) fn run(
        &mut self,
        input: &FuzzInput,
        runs: &mut u64,
        mut each: impl FnMut(usize, u8),
    ) -> Option<Violation> {
        self.side.set(input);
        if let Some(old) = &self.old {
            old.set(input);
        }
        let mut found = None;
        for (place, step) in input.steps.iter().enumerate() {
            *runs += 1;
            let before = self.instructions;
            found = self.step(input, place, step, &mut each);
            let is_slow = self.instructions - before > SLOW;
            let is_late = is_slow && self.end.is_some_and(|end| Instant::now() >= end);
            if found.is_some() || is_late {
                break;
            }
        }
        if found.is_none() && self.old.is_some() {
            found = self.maps_differ(input.steps.len().saturating_sub(1));
        }
        let (loaded, counters) = (self.side.loaded, self.counters);
        loaded.reset_observed(self.side.marked, |map, place, word| {
            let (feature, class) = state_feature(map, place, word);
            each(counters + feature, class);
        });
        if let Some(old) = &self.old {
            old.loaded.reset(old.marked);
        }
        found
    }

    /// The numbers that jumps of the runs of an input compared.
    pub(super) fn comparisons(&mut self, input: &FuzzInput) -> Vec<Compared> {
        self.side.set(input);
        let mut compared = Vec::new();
        let whole = self.side.program.limits();
        self.side.program.set_limits(Limits {
            instructions: MOST_TOLD,
            ..whole
        });
        for (place, step) in input.steps.iter().enumerate() {
            let given = given(
                input,
                place,
                (step, self.side.program.kind()),
                self.is_seeded,
            );
            compared.extend(self.side.program.comparisons(given, &mut self.guard));
            self.side.records();
        }
        self.side.program.set_limits(whole);
        self.side.loaded.drain_counters(|_, _| {});
        self.side.loaded.reset(self.side.marked);
        compared.sort_unstable();
        compared.dedup();
        compared
    }

    fn step(
        &mut self,
        input: &FuzzInput,
        place: usize,
        step: &InputStep,
        each: &mut impl FnMut(usize, u8),
    ) -> Option<Violation> {
        let given = given(
            input,
            place,
            (step, self.side.program.kind()),
            self.is_seeded,
        );
        let result = self.side.program.run_input(given, &mut self.guard);
        let mut instructions = 0;
        let weights = self.weights;
        self.side.loaded.drain_counters(|index, count| {
            instructions += u64::from(weights[index]) * count;
            each(index, class_of(count));
        });
        if self.side.is_checked {
            instructions = self.side.program.executed().unwrap_or(0);
        }
        self.instructions += instructions;
        let retval = match result {
            Ok(retval) => retval,
            Err(error) if error.is_stop() => return self.stopped(place, &error),
            // Linux takes no such packet or context.
            Err(_) => return None,
        };
        let known = match self.known.iter().position(|known| known.retval == retval) {
            Some(known) => known,
            None => self.learn(retval),
        };
        if !self.known[known].suspects.is_empty()
            && let Some(violation) = self.check_verdict(known, place, step)
        {
            return Some(violation);
        }
        if let Some(violation) = self.check_instructions(known, instructions, place) {
            return Some(violation);
        }
        match self.looks_closer {
            true => self.look_closer(known, place, (input, step)),
            false => {
                if self.side.has_records {
                    self.side.records();
                }
                None
            }
        }
    }
}

/// A step as a program of a type runs it.
pub(super) fn given<'i>(
    input: &FuzzInput,
    place: usize,
    (step, kind): (&'i InputStep, ProgramType),
    is_seeded: bool,
) -> RunInput<'i> {
    RunInput {
        frame: &step.packet,
        context: step.context_of(kind),
        time: step.time,
        // Expectation files number the runs behind `seed` from 1.
        seed: is_seeded.then(|| input.seed.wrapping_add(place as u64 + 1)),
    }
}
