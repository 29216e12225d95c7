//! The loop of fuzzing: rounds of jobs, the corpus between them, and the finds.

use std::thread;
use std::time::{Duration, Instant};

use ::kernel::programs::TestProgram;
use object::Object;
use spec::programs::ProgramType;

use super::executor::{Executor, FuzzTarget, Violation};
use super::find::{CaptureForm, FuzzFind};
use super::fit::{check, check_varied, shape};
use super::input::FuzzInput;
use super::minimize::minimize;
use super::mutator::Mutator;
use super::property::{Holds, Property};
use super::random::Chooser;
use super::worker::{Clock, Entry, Kept, Round, Share, work};
use crate::internal::run::{LoadOptions, LoadedObject, Marked};

/// What is fuzzed, and for how long.
#[derive(Clone, Debug)]
pub struct FuzzPlan {
    /// The program.
    pub program: String,
    /// What must hold.
    pub properties: Vec<Property>,
    /// First inputs.
    pub seeds: Vec<FuzzInput>,
    /// Seed of all choices.
    pub seed: u64,
    /// Most runs, about; none for no limit.
    pub runs: Option<u64>,
    /// Most time; none for no limit.
    pub time: Option<Duration>,
    /// Most packets of an input.
    pub packets: usize,
    /// Names of maps whose contents are inputs.
    pub vary: Vec<String>,
    /// Contexts are inputs beside packets.
    pub contexts: bool,
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug)]
pub struct FuzzProgress {
    /// Runs so far.
    pub runs: u64,
    /// Time so far.
    pub time: Duration,
    /// Inputs that are kept.
    pub kept: usize,
    /// Counters that were incremented, of how many.
    pub covered: (usize, usize),
    /// Properties that do not hold.
    pub finds: usize,
}

/// What came of a campaign.
#[derive(Debug)]
pub struct FuzzReport {
    /// Runs, those that made finds small left out.
    pub runs: u64,
    /// Time of these.
    pub time: Duration,
    /// The inputs that were kept.
    pub corpus: Vec<FuzzInput>,
    /// Blocks and ways of branches that ran, of how many.
    pub covered: (usize, usize),
    /// The properties that do not hold, each once.
    pub finds: Vec<FuzzFind>,
    /// Maps that are not set back between inputs.
    pub kept_maps: Vec<String>,
    /// Files of a corpus that were left out, and why.
    pub skipped: Vec<String>,
}

/// A program with targets for the jobs, one each.
pub struct Campaign<'c, 'o> {
    /// The object, for its types.
    pub object: &'c Object<'o>,
    /// What is fuzzed.
    pub plan: FuzzPlan,
    targets: Vec<FuzzTarget>,
}

/// Runs of a job in the first round; twice as many in each of the next ones, up to [`MOST_SHARE`].
const FIRST_SHARE: u64 = 1024;
const MOST_SHARE: u64 = 1 << 16;

/// Instructions of runs that make a find small: some seconds.
const MOST_TO_MINIMIZE: u64 = 4_000_000_000;

impl<'c, 'o> Campaign<'c, 'o> {
    /// Load options that fuzzing needs.
    pub fn load_options(options: LoadOptions) -> LoadOptions {
        LoadOptions {
            counts: true,
            journals: true,
            ..options
        }
    }

    /// A campaign on objects that were loaded with [`Campaign::load_options`], one for each job, with
    /// their maps filled, and others of which each has to do the same.
    ///
    /// # Errors
    /// For properties that the program cannot have, in words.
    pub fn new(
        object: &'c Object<'o>,
        mut plan: FuzzPlan,
        targets: Vec<(LoadedObject, Option<LoadedObject>)>,
    ) -> Result<Campaign<'c, 'o>, String> {
        let targets = targets.into_iter();
        let targets: Vec<FuzzTarget> = targets
            .map(|(loaded, against)| FuzzTarget { loaded, against })
            .collect();
        let first = targets.first().ok_or("there is no job")?;
        let place = first.loaded.program_place(&plan.program);
        let place = place.ok_or_else(|| format!("there is no program {}", plan.program))?;
        let kind = first.loaded.program_kind(place);
        for property in &plan.properties {
            check(property, object, &first.loaded, &plan.program, kind)
                .map_err(|what| format!("{property}: {what}"))?;
        }
        for name in &plan.vary {
            check_varied(&first.loaded, name)?;
        }
        plan.packets = plan.packets.max(1);
        plan.properties.push(Property(Holds::Ends));
        if first.against.is_some() {
            plan.properties.push(Property(Holds::Same));
        }
        Ok(Campaign {
            object,
            plan,
            targets,
        })
    }

    /// Looks for inputs on which a property does not hold, until each was found or runs or time are over.
    /// `observe` is called between rounds.
    ///
    /// # Errors
    /// None is known; programs and maps were checked.
    pub fn run(&mut self, observe: &mut dyn FnMut(FuzzProgress)) -> Result<FuzzReport, String> {
        let start = Instant::now();
        let end = self.plan.time.map(|time| start + time);
        let (plan, object) = (&self.plan, self.object);
        let marks: Vec<Vec<Marked>> = self.targets.iter().map(mark).collect();
        let loaded = &self.targets[0].loaded;
        let shape = shape(loaded, &marks[0][0], plan);
        let weights = loaded.counter_weights();
        let counters = loaded.counters();
        let mut seen = vec![0_u8; Executor::features(loaded)];
        let missing = || format!("there is no program {}", plan.program);
        let mut entries: Vec<Entry> = Vec::new();
        let mut found: Vec<(FuzzInput, Violation, u64, Duration)> = Vec::new();
        let mut skipped = vec![false; plan.properties.len()];
        let mut runs = 0;

        // The seeds, and some frames where there are none.
        let mut first = Round::default();
        {
            let (target, marked) = (&self.targets[0], &marks[0]);
            let executor = Executor::new(
                object,
                &plan.program,
                &plan.properties,
                target,
                (marked, &weights),
            );
            let mut executor = executor.ok_or_else(missing)?.until(end);
            let mut mutator = Mutator::new(shape.clone(), &target.loaded);
            let mut chooser = Chooser::new(plan.seed, &[u64::MAX]);
            let mut seeds = plan.seeds.clone();
            for _ in 0..if seeds.is_empty() { 64 } else { 16 } {
                let mut input = FuzzInput::default();
                mutator.generate(&mut chooser, &mut input);
                seeds.push(input);
            }
            let mut clock = Clock::new(end);
            for input in seeds {
                if first.runs >= plan.runs.unwrap_or(u64::MAX) || clock.is_over() {
                    break;
                }
                let mut classes = Vec::new();
                let violation = executor.run(&input, &mut first.runs, |feature, class| {
                    classes.push((feature, class));
                });
                if let Some(violation) = violation {
                    executor.skipped[violation.property] = true;
                    first.found.push((input.clone(), violation));
                }
                first.kept.push(Kept { input, classes });
            }
        }
        let mut rounds = vec![first];
        for number in 0_u32.. {
            {
                let (target, marked) = (&self.targets[0], &marks[0]);
                let executor = Executor::new(
                    object,
                    &plan.program,
                    &plan.properties,
                    target,
                    (marked, &weights),
                );
                let mut executor = executor.ok_or_else(missing)?;
                for round in rounds.drain(..) {
                    runs += round.runs;
                    for kept in round.kept {
                        let is_new = |(feature, class): &(usize, u8)| seen[*feature] & class == 0;
                        let mut new = kept.classes.iter().filter(|each| is_new(each)).peekable();
                        if new.peek().is_none() {
                            continue;
                        }
                        let is_by_state = new.all(|(feature, _)| *feature >= counters);
                        for (feature, class) in kept.classes {
                            seen[feature] |= class;
                        }
                        entries.push(Entry {
                            compared: executor.comparisons(&kept.input),
                            input: kept.input,
                            is_by_state,
                        });
                    }
                    for (input, violation) in round.found {
                        if !std::mem::replace(&mut skipped[violation.property], true) {
                            found.push((input, violation, runs, start.elapsed()));
                        }
                    }
                }
            }
            let looked_for = plan.properties.iter().zip(&skipped);
            let mut looked_for = looked_for
                .filter(|(property, is_found)| !**is_found && !matches!(property.0, Holds::Ends));
            let is_all_found = looked_for.next().is_none() && !found.is_empty();
            let covered = seen[..counters].iter().filter(|classes| **classes != 0);
            let covered = covered.count();
            observe(FuzzProgress {
                runs,
                time: start.elapsed(),
                kept: entries.len(),
                covered: (covered, counters),
                finds: found.len(),
            });
            let left = plan.runs.map_or(u64::MAX, |most| most.saturating_sub(runs));
            if is_all_found || left == 0 || end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let jobs = self.targets.len() as u64;
            let share = (FIRST_SHARE << number.min(16)).min(MOST_SHARE);
            let share = share.min(left.div_ceil(jobs));
            let job = |place: usize, target: &FuzzTarget, marked: &Vec<Marked>| -> Option<Round> {
                let (properties, parts) = (&plan.properties, (&marked[..], &weights[..]));
                let executor = Executor::new(object, &plan.program, properties, target, parts);
                let mut executor = executor?.until(end);
                executor.skipped.clone_from(&skipped);
                let mut mutator = Mutator::new(shape.clone(), &target.loaded);
                let share = Share {
                    entries: &entries,
                    chooser: Chooser::new(plan.seed, &[number.into(), place as u64]),
                    runs: share,
                    end,
                };
                Some(work(&mut executor, &mut mutator, &mut seen.clone(), share))
            };
            let jobs = self.targets.iter().zip(&marks).enumerate();
            let done: Vec<Option<Round>> = match self.targets.len() {
                1 => jobs
                    .map(|(at, (target, marked))| job(at, target, marked))
                    .collect(),
                _ => thread::scope(|scope| {
                    let job = &job;
                    let start = |(at, (target, marked))| {
                        let thread = thread::Builder::new();
                        let started = thread.spawn_scoped(scope, move || job(at, target, marked));
                        (at, target, marked, started)
                    };
                    let started: Vec<_> = jobs.map(start).collect();
                    let ends = started.into_iter();
                    ends.map(|(at, target, marked, started)| match started {
                        Ok(thread) => thread.join().unwrap_or(None),
                        // Where there are no threads, this one does it.
                        Err(_) => job(at, target, marked),
                    })
                    .collect()
                }),
            };
            for round in done {
                rounds.push(round.ok_or_else(missing)?);
            }
        }
        let time = start.elapsed();
        let finds = self.finds(found, &marks[0], &weights)?;
        let loaded = &self.targets[0].loaded;
        Ok(FuzzReport {
            runs,
            time,
            covered: (
                seen[..counters]
                    .iter()
                    .filter(|classes| **classes != 0)
                    .count(),
                counters,
            ),
            corpus: entries.into_iter().map(|entry| entry.input).collect(),
            finds,
            kept_maps: loaded.kept_maps().map(str::to_owned).collect(),
            skipped: Vec::new(),
        })
    }

    /// Makes finds small and describes them.
    fn finds(
        &self,
        found: Vec<(FuzzInput, Violation, u64, Duration)>,
        marked: &[Marked],
        weights: &[u32],
    ) -> Result<Vec<FuzzFind>, String> {
        let (plan, target) = (&self.plan, &self.targets[0]);
        let mut finds = Vec::new();
        for (input, violation, runs, time) in found {
            let parts = (marked, weights);
            let properties = &plan.properties;
            let executor = Executor::new(self.object, &plan.program, properties, target, parts);
            let mut executor = executor.ok_or("the program is gone")?;
            for (place, skipped) in executor.skipped.iter_mut().enumerate() {
                *skipped = place != violation.property;
            }
            let first = (input, violation);
            let (input, violation) = minimize(first, |input| {
                let is_spent = executor.instructions > MOST_TO_MINIMIZE;
                let violation = executor.run(input, &mut 0, |_, _| {});
                (violation, is_spent)
            });
            finds.push(FuzzFind::new(
                plan.properties[violation.property].to_string(),
                (input, violation),
                (runs, time),
            ));
        }
        Ok(finds)
    }

    /// The form of captures of what the program gets; `None` if it gets no packets.
    pub fn capture_form(&self) -> Option<CaptureForm> {
        let loaded = self.loaded();
        let kind = loaded.program_kind(loaded.program_place(&self.plan.program)?);
        let runs_on_captures = TestProgram::of(kind)?.captured(&[]).is_some();
        match kind {
            ProgramType::Netfilter => Some(CaptureForm::Network),
            _ => runs_on_captures.then_some(CaptureForm::Link),
        }
    }

    /// The object of the first job, as it was loaded.
    pub fn loaded(&self) -> &LoadedObject {
        &self.targets[0].loaded
    }
}

fn mark(target: &FuzzTarget) -> Vec<Marked> {
    let sides = [Some(&target.loaded), target.against.as_ref()];
    sides
        .into_iter()
        .flatten()
        .map(LoadedObject::mark)
        .collect()
}
