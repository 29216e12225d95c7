//! Runs inputs and holds them to the properties.

use ::kernel::maps::Written;
use ::kernel::programs::{PacketVerdict, verdict};
use object::Object;
use packet::{Metadata, Packet};

use super::input::{FuzzInput, InputStep};
use super::property::{Condition, FuzzRun, Holds, Property};
use crate::internal::expect::ExpectationKind;
use crate::internal::run::{
    Compared, LoadedObject, Marked, RunError, RunGuard, RunInput, RunRecord, RunnableProgram,
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
struct Known {
    retval: u32,
    verdict: PacketVerdict,
    /// Properties about verdicts that it may not have.
    suspects: Vec<usize>,
}

/// One program with what runs it.
struct Side<'w> {
    loaded: &'w LoadedObject,
    marked: &'w Marked,
    program: RunnableProgram<'w>,
    has_records: bool,
    /// It runs in the checked engine.
    is_checked: bool,
}

/// Runs inputs on a target.
pub(super) struct Executor<'w, 'o> {
    object: &'w Object<'o>,
    properties: &'w [Property],
    /// Those that were found already, or are not looked for.
    pub(super) skipped: Vec<bool>,
    runners: Vec<Option<FilterRunner<'w>>>,
    side: Side<'w>,
    old: Option<Side<'w>>,
    guard: RunGuard,
    known: Vec<Known>,
    weights: &'w [u32],
    /// Some properties are about more than verdicts and instructions.
    looks_closer: bool,
    is_seeded: bool,
}

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

    fn records(&self) -> Vec<RunRecord> {
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
                ExpectationKind::Instructions => false,
                ExpectationKind::Value | ExpectationKind::Output | ExpectationKind::Maps => true,
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
            weights,
            looks_closer,
            is_seeded: target.loaded.calls(super::RANDOM_HELPERS),
        })
    }

    /// Runs an input; the first property that does not hold. `each` gets the counters of every run. The
    /// number of runs is added to `runs`.
    pub(super) fn run(
        &mut self,
        input: &FuzzInput,
        runs: &mut u64,
        mut each: impl FnMut(usize, u64),
    ) -> Option<Violation> {
        self.side.set(input);
        if let Some(old) = &self.old {
            old.set(input);
        }
        let mut found = None;
        for (place, step) in input.steps.iter().enumerate() {
            *runs += 1;
            found = self.step(input, place, step, &mut each);
            if found.is_some() {
                break;
            }
        }
        if found.is_none() && self.old.is_some() {
            found = self.maps_differ(input.steps.len().saturating_sub(1));
        }
        self.side.loaded.reset(self.side.marked);
        if let Some(old) = &self.old {
            old.loaded.reset(old.marked);
        }
        found
    }

    /// The numbers that jumps of the runs of an input compared.
    pub(super) fn comparisons(&mut self, input: &FuzzInput) -> Vec<Compared> {
        self.side.set(input);
        let mut compared = Vec::new();
        for (place, step) in input.steps.iter().enumerate() {
            let given = given(input, place, step, self.is_seeded);
            compared.extend(self.side.program.comparisons(given, &mut self.guard));
            self.side.records();
        }
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
        each: &mut impl FnMut(usize, u64),
    ) -> Option<Violation> {
        let given = given(input, place, step, self.is_seeded);
        let result = self.side.program.run_input(given, &mut self.guard);
        let mut instructions = 0;
        let weights = self.weights;
        self.side.loaded.drain_counters(|index, count| {
            instructions += u64::from(weights[index]) * count;
            each(index, count);
        });
        if self.side.is_checked {
            instructions = self.side.program.executed().unwrap_or(0);
        }
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

    fn holds_no_more(&self, property: usize) -> bool {
        self.skipped[property]
    }

    #[cold]
    fn stopped(&self, step: usize, error: &RunError) -> Option<Violation> {
        let is_ends = |property: &Property| matches!(property.0, Holds::Ends);
        let property = self.properties.iter().position(is_ends)?;
        (!self.skipped[property]).then(|| Violation {
            property,
            step,
            what: error.to_string(),
            expects: Expects::Lines(vec!["instructions <= 1000000".to_owned()]),
        })
    }

    /// Remembers a value that programs return.
    #[cold]
    fn learn(&mut self, retval: u32) -> usize {
        let known = verdict(self.side.program.kind(), retval);
        let mut suspects = Vec::new();
        for (place, property) in self.properties.iter().enumerate() {
            let is_suspect = match &property.0 {
                Holds::Never { verdict, .. } => *verdict == known.name,
                Holds::Always { verdict, .. } => *verdict != known.name,
                _ => false,
            };
            if is_suspect {
                suspects.push(place);
            }
        }
        // Programs may return any number.
        self.known.truncate(255);
        self.known.push(Known {
            retval,
            verdict: known,
            suspects,
        });
        self.known.len() - 1
    }

    fn check_verdict(&mut self, known: usize, place: usize, step: &InputStep) -> Option<Violation> {
        let known = &self.known[known];
        for property in known.suspects.iter().copied() {
            if self.skipped[property] {
                continue;
            }
            if let Some(runner) = &mut self.runners[property] {
                let packet = Packet::whole(&step.packet, &Metadata::UNKNOWN);
                // A filter that does not end takes no packet.
                if runner.run(&packet).unwrap_or(0) == 0 {
                    continue;
                }
            }
            let line = match &self.properties[property].0 {
                Holds::Always { verdict, .. } => format!("verdict {verdict}"),
                _ => format!("verdict not {}", known.verdict.name),
            };
            return Some(Violation {
                property,
                step: place,
                what: format!("got {} ({})", known.verdict.name, known.retval as i32),
                expects: Expects::Lines(vec![line]),
            });
        }
        None
    }

    fn check_instructions(
        &self,
        known: usize,
        instructions: u64,
        step: usize,
    ) -> Option<Violation> {
        for (property, holds) in self.properties.iter().enumerate() {
            let Holds::Expect(expectation) = &holds.0 else {
                continue;
            };
            let Some((verdict, most)) = expectation.most_instructions() else {
                continue;
            };
            let is_of = verdict.is_none_or(|name| name == self.known[known].verdict.name);
            if instructions > most && is_of && !self.holds_no_more(property) {
                return Some(Violation {
                    property,
                    step,
                    what: format!("got {instructions} instructions"),
                    expects: Expects::Lines(vec![expectation.text().to_owned()]),
                });
            }
        }
        None
    }

    /// Checks properties that are about more than the verdict.
    fn look_closer(
        &mut self,
        known: usize,
        place: usize,
        (input, step): (&FuzzInput, &InputStep),
    ) -> Option<Violation> {
        let retval = self.known[known].retval;
        let records = self.side.records();
        let context = step.context.as_deref();
        let wrong = |property: usize, what: String, expects: Expects| {
            Some(Violation {
                property,
                step: place,
                what,
                expects,
            })
        };
        for property in 0..self.properties.len() {
            if self.skipped[property] {
                continue;
            }
            match &self.properties[property].0 {
                Holds::Never { .. } | Holds::Always { .. } | Holds::Ends => {}
                Holds::Expect(expectation) => {
                    let what = match expectation.kind() {
                        ExpectationKind::Instructions => None,
                        ExpectationKind::Maps => expectation
                            .maps_differ(self.object, self.side.loaded)
                            .ok()?,
                        ExpectationKind::Value | ExpectationKind::Output => {
                            let run = self.side.program.output(retval);
                            expectation.differs(&step.packet, context, run)
                        }
                    };
                    if let Some(what) = what {
                        let lines = vec![expectation.text().to_owned()];
                        return wrong(property, what, Expects::Lines(lines));
                    }
                }
                Holds::Check(_, check) => {
                    let data_out = self.side.program.output(retval).data_out;
                    let checked = check(&FuzzRun {
                        packet: &step.packet,
                        context,
                        time: step.time,
                        retval,
                        verdict: &self.known[known].verdict.name,
                        data_out: &data_out,
                        loaded: self.side.loaded,
                    });
                    if let Err(what) = checked {
                        return wrong(property, what, Expects::Nothing);
                    }
                }
                Holds::Idempotent => {
                    let again = self.run_again(known, place, (input, step));
                    if let Some((what, expects)) = again {
                        return wrong(property, what, expects);
                    }
                }
                Holds::Same => {
                    let differs = self.differs(known, &records, place, (input, step));
                    if let Some((what, expects)) = differs {
                        return wrong(property, what, expects);
                    }
                }
            }
        }
        None
    }

    /// Runs the program on what the last run left; what differs.
    fn run_again(
        &mut self,
        known: usize,
        place: usize,
        (input, step): (&FuzzInput, &InputStep),
    ) -> Option<(String, Expects)> {
        let Known {
            retval, verdict, ..
        } = &self.known[known];
        // What is dropped does not come again.
        verdict.kept?;
        let first = self.side.program.output(*retval).data_out;
        let step = InputStep {
            packet: first,
            ..step.clone()
        };
        let given = given(input, place, &step, self.is_seeded);
        let result = self.side.program.run_input(given, &mut self.guard);
        self.side.loaded.drain_counters(|_, _| {});
        self.side.records();
        let second = result.ok()?;
        let left = self.side.program.output(second);
        let lines = vec![
            format!("verdict {}", verdict.name),
            "data unchanged".to_owned(),
        ];
        let what = match second == *retval {
            true if left.data_out == step.packet => return None,
            true => "a second run changes the packet again".to_owned(),
            false => format!(
                "a second run gives {}, the first {}",
                left.verdict.name, verdict.name
            ),
        };
        Some((what, Expects::Again(step.packet, lines)))
    }

    /// Runs the other object on the same; what differs, and what it gave.
    fn differs(
        &mut self,
        known: usize,
        records: &[RunRecord],
        place: usize,
        (input, step): (&FuzzInput, &InputStep),
    ) -> Option<(String, Expects)> {
        let old = self.old.as_mut()?;
        let given = given(input, place, step, self.is_seeded);
        let result = old.program.run_input(given, &mut self.guard);
        old.loaded.drain_counters(|_, _| {});
        let old_records = old.records();
        let Known {
            retval,
            verdict: new,
            ..
        } = &self.known[known];
        let line = |text: String| Expects::Lines(vec![text]);
        let expected = match result {
            Ok(expected) => expected,
            Err(error) if error.is_stop() => {
                return Some((format!("the other object stops: {error}"), Expects::Nothing));
            }
            Err(_) => return None,
        };
        let before = verdict(old.program.kind(), expected);
        if expected != *retval {
            let what = format!("got {}, the other object gives {}", new.name, before.name);
            return Some((what, line(format!("retval {}", expected as i32))));
        }
        let (one, other) = (self.side.program.captured()?, old.program.captured()?);
        let (to, old_to) = (one.redirect(*retval), other.redirect(expected));
        if to != old_to {
            let target = old_to.map(crate::internal::run::redirect_json);
            let target = target.map_or("none".to_owned(), |target| {
                serde_json::Value::Object(target).to_string()
            });
            let what = "it redirects the packet elsewhere than the other object".to_owned();
            return Some((what, line(format!("redirect {target}"))));
        }
        if before.kept.is_some() {
            let (left, expected) = (one.data_out(), other.data_out());
            if left != expected {
                let what = "it leaves another packet than the other object".to_owned();
                return Some((what, line(format!("data {}", super::hex(&expected)))));
            }
        }
        if records != old_records {
            let what = "it writes other records than the other object".to_owned();
            return Some((what, Expects::Nothing));
        }
        if self.side.program.printed() != old.program.printed() {
            let what = "it prints other text than the other object".to_owned();
            return Some((what, Expects::Nothing));
        }
        None
    }

    /// A map of both objects that holds something else in each.
    fn maps_differ(&self, step: usize) -> Option<Violation> {
        let old = self.old.as_ref()?;
        let is_same = |property: &Property| matches!(property.0, Holds::Same);
        let property = self.properties.iter().position(is_same)?;
        if self.skipped[property] {
            return None;
        }
        for map in self.side.loaded.maps() {
            let name = &map.def.name;
            let Some(before) = old.loaded.maps().find(|known| known.def.name == *name) else {
                continue;
            };
            let sizes = |map: &crate::internal::run::ObjectMap| {
                (
                    map.def.params.key_size,
                    map.def.params.value_size,
                    map.map.kind(),
                )
            };
            let (Some(written), Some(old_written), true) = (
                self.side.loaded.written(map),
                old.loaded.written(before),
                sizes(map) == sizes(before),
            ) else {
                continue;
            };
            let value = |map: &crate::internal::run::ObjectMap, key: &[u8]| {
                let mut value = vec![0; map.map.value_len()];
                map.map.lookup(key, &mut value, 0).ok().map(|()| value)
            };
            let keys = written.iter().chain(&old_written);
            for (key, _) in keys {
                let now: Written = (key.clone(), value(map, key));
                let expected: Written = (key.clone(), value(before, key));
                if now != expected {
                    return Some(Violation {
                        property,
                        step,
                        what: format!(
                            "map {name} holds something else than that of the other object"
                        ),
                        expects: Expects::Element {
                            map: name.clone(),
                            key: expected.0,
                            value: expected.1,
                        },
                    });
                }
            }
        }
        None
    }
}

/// A step as a program runs it.
fn given<'i>(
    input: &FuzzInput,
    place: usize,
    step: &'i InputStep,
    is_seeded: bool,
) -> RunInput<'i> {
    RunInput {
        frame: &step.packet,
        context: step.context.as_deref(),
        time: step.time,
        // Expectation files number the runs behind `seed` from 1.
        seed: is_seeded.then(|| input.seed.wrapping_add(place as u64 + 1)),
    }
}
