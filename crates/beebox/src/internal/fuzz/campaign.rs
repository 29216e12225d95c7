//! The loop of fuzzing: rounds of jobs, the corpus between them, and the finds.

use std::thread;
use std::time::{Duration, Instant};

use ::kernel::programs::TestProgram;
use object::Object;
use spec::programs::ProgramType;

use super::executor::{Executor, FuzzTarget, Violation};
use super::find::FuzzFind;
use super::input::FuzzInput;
use super::minimize::minimize;
use super::property::{Holds, Property};
use super::random::Chooser;
use super::worker::{Entry, Mutator, Round, Shape, Share, class_of, work};
use super::{RANDOM_HELPERS, TIME_HELPERS};
use crate::internal::expect::ExpectationKind;
use crate::internal::run::{LoadOptions, LoadedObject, Marked, verdict_names};

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
        let shape = shape(&self.targets[0].loaded, plan);
        let marks: Vec<Vec<Marked>> = self.targets.iter().map(mark).collect();
        let weights = self.targets[0].loaded.counter_weights();
        let mut seen = vec![0_u8; self.targets[0].loaded.counters()];
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
            let mut executor = executor.ok_or_else(missing)?;
            let mut mutator = Mutator::new(shape.clone(), &target.loaded);
            let mut chooser = Chooser::new(plan.seed, &[u64::MAX]);
            let mut seeds = plan.seeds.clone();
            for _ in 0..if seeds.is_empty() { 64 } else { 16 } {
                let mut input = FuzzInput::default();
                mutator.generate(&mut chooser, &mut input);
                seeds.push(input);
            }
            for input in seeds {
                if first.runs >= plan.runs.unwrap_or(u64::MAX) {
                    break;
                }
                let mut classes = Vec::new();
                let violation = executor.run(&input, &mut first.runs, |counter, count| {
                    classes.push((counter, class_of(count)));
                });
                if let Some(violation) = violation {
                    executor.skipped[violation.property] = true;
                    first.found.push((input.clone(), violation));
                }
                let kept = super::worker::Kept { input, classes };
                first.kept.push(kept);
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
                        let is_new = |(counter, class): &(usize, u8)| seen[*counter] & class == 0;
                        if kept.classes.iter().any(is_new) {
                            for (counter, class) in kept.classes {
                                seen[counter] |= class;
                            }
                            entries.push(Entry {
                                compared: executor.comparisons(&kept.input),
                                input: kept.input,
                            });
                        }
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
            let covered = seen.iter().filter(|classes| **classes != 0).count();
            observe(FuzzProgress {
                runs,
                time: start.elapsed(),
                kept: entries.len(),
                covered: (covered, seen.len()),
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
                let mut executor = executor?;
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
                    let jobs: Vec<_> = jobs
                        .map(|(at, (target, marked))| scope.spawn(move || job(at, target, marked)))
                        .collect();
                    jobs.into_iter()
                        .map(|job| job.join().unwrap_or(None))
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
                seen.iter().filter(|classes| **classes != 0).count(),
                seen.len(),
            ),
            corpus: entries.into_iter().map(|entry| entry.input).collect(),
            finds,
            kept_maps: loaded.kept_maps().map(str::to_owned).collect(),
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
            let (input, violation) =
                minimize(first, |input| executor.run(input, &mut 0, |_, _| {}));
            finds.push(FuzzFind::new(
                plan.properties[violation.property].to_string(),
                (input, violation),
                (runs, time),
            ));
        }
        Ok(finds)
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

/// What inputs of a program consist of.
fn shape(loaded: &LoadedObject, plan: &FuzzPlan) -> Shape {
    let place = loaded.program_place(&plan.program).unwrap_or_default();
    let kind = loaded.program_kind(place);
    let rules = TestProgram::of(kind);
    let has_packets = rules.is_some_and(TestProgram::has_packet);
    let (context, settable) = match (has_packets, plan.contexts) {
        (true, false) => (0, Vec::new()),
        _ => context_of(loaded, place, kind),
    };
    let maps = loaded
        .maps()
        .filter(|map| plan.vary.contains(&map.def.name));
    let maps = maps.map(|map| {
        let key = map.def.params.key_size as usize;
        (map.def.name.clone(), key, map.map.value_len())
    });
    Shape {
        has_packets,
        context,
        settable,
        has_time: loaded.calls(TIME_HELPERS),
        has_random: loaded.calls(RANDOM_HELPERS),
        maps: maps.collect(),
        most_steps: plan.packets,
    }
}

/// Bytes of the contexts that a test run takes, and which of them may be set.
fn context_of(loaded: &LoadedObject, place: usize, kind: ProgramType) -> (usize, Vec<usize>) {
    const RAW_ARGUMENTS: usize = 12 * 8;
    let len = match kind {
        ProgramType::SkLookup => 68,
        ProgramType::RawTracepoint => RAW_ARGUMENTS,
        ProgramType::Syscall => loaded.context_bytes(place).max(8),
        _ if TestProgram::of(kind).is_some_and(TestProgram::has_packet) => {
            // Of `struct __sk_buff`: mark, priority, cb and tstamp; others have no such fields.
            let settable = [8..12, 32..36, 48..68, 152..160];
            return match TestProgram::of(kind).is_some_and(TestProgram::has_sk_buff) {
                true => (192, settable.into_iter().flatten().collect()),
                false => (0, Vec::new()),
            };
        }
        _ => 64,
    };
    (len, (0..len).collect())
}

/// Checks that a program can have a property.
fn check(
    property: &Property,
    object: &Object<'_>,
    loaded: &LoadedObject,
    program: &str,
    kind: ProgramType,
) -> Result<(), String> {
    match &property.0 {
        Holds::Never { verdict, .. } | Holds::Always { verdict, .. } => {
            let names = verdict_names(kind);
            let is_known = match names.is_empty() {
                true => verdict.parse::<i32>().is_ok(),
                false => names.contains(&verdict.as_str()) || verdict.starts_with("unknown ("),
            };
            let known = match names.is_empty() {
                true => "numbers".to_owned(),
                false => names.join(", "),
            };
            let kind = kind.name();
            is_known.then_some(()).ok_or_else(|| {
                format!("programs of type {kind} have no verdict {verdict:?}; they have {known}")
            })
        }
        Holds::Expect(expectation) => {
            let is_data = expectation.kind() == ExpectationKind::Output;
            let has_packet = TestProgram::of(kind).is_some_and(TestProgram::has_packet);
            if is_data && !has_packet {
                return Err(format!("programs of type {} get no packet", kind.name()));
            }
            expectation.resolve(object, loaded, program)
        }
        Holds::Idempotent => match TestProgram::of(kind).is_some_and(TestProgram::has_packet) {
            true => Ok(()),
            false => Err(format!("programs of type {} get no packet", kind.name())),
        },
        Holds::Check(..) | Holds::Ends | Holds::Same => Ok(()),
    }
}

/// Checks that the contents of a map can be inputs.
fn check_varied(loaded: &LoadedObject, name: &str) -> Result<(), String> {
    let found = loaded.maps().find(|map| map.def.name == name);
    let Some(map) = found else {
        let known: Vec<&str> = loaded.maps().map(|map| map.def.name.as_str()).collect();
        let known = known.join(", ");
        return Err(format!(
            "no loaded program uses a map {name}; there are {known}"
        ));
    };
    let is_kept = loaded.kept_maps().any(|kept| kept == name);
    let has_keys = map.def.params.key_size > 0 && map.def.initial_value().is_none();
    match has_keys && !is_kept && loaded.written(map).is_some() {
        true => Ok(()),
        false => Err(format!(
            "map {name} of kind {} has no elements that inputs can have",
            map.map.kind().name()
        )),
    }
}
