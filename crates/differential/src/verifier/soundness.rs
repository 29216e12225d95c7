//! The soundness oracle: programs that the verifier accepts run in the checked engine with
//! random contexts, packets and map contents, and every instruction of every run is held to
//! the abstract states that the verification recorded there.
//!
//! Two verifications of a program are recorded. With every scalar precise, all live
//! registers and slots lie inside one state; in normal mode the pointers and the precise
//! scalars do. Every fact for a compiler holds in every run, too; a second run, in which
//! upper halves that do not matter are garbage, ends as the first. A run that is in no
//! state, breaks a fact or traps is an escape: the verifier accepted what it did not prove.

mod contain;
mod facts;
mod maps;
mod setting;
mod watch;

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use interp::checked::{CheckedContext, CheckedProgram, Entry, Limits, Observer, Reason, Trap};
use isa::ebpf::Insn;
use kernel::maps::RunGuard;
use packet::{Metadata, Packet};
use program::Program;
use program::case::Case;
use spec::Kernel;
use spec::kfuncs::KernelFunction;
use spec::maps::MapKind;
use spec::registry::Registry;
use verifier::{Options, ProgramFacts, RecordedStates, Stress, Verdict, verify_recorded};

pub use facts::FactCounts;

use testkit::verifier::generated_runnable;

use contain::Claim;
use facts::{Claims, Garbage};
use setting::{Places, Setting};
use vm::PacketBuffer;
use watch::{Recording, Watcher};

/// Instructions of a run at most.
const MAX_STEPS: u64 = 20_000;
/// States of a verification at most.
const MAX_STATES: usize = 200_000;
/// Escapes that are kept.
const KEPT: usize = 20;
/// Programs that the reduction of one escape may run.
const REDUCTION_RUNS: u32 = 2000;

/// A run outside of what was proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    /// Seed of the run's input.
    pub input: u64,
    /// The instruction.
    pub at: usize,
    /// The violated containment, or the trap.
    pub what: String,
}

/// Outcome of the runs of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The verifier does not accept it.
    Refused,
    /// Runs cannot have what it uses.
    Uncovered(String),
    /// All runs stayed inside.
    Contained(Box<Runs>),
    /// A run did not.
    Escaped(Escape),
}

/// Number of calls of each helper, and by map kind of helpers that take maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Calls by number of the helper.
    pub helpers: BTreeMap<i32, u64>,
    /// Calls with a map in `r1` or `r2`, by its kind's name.
    pub maps: BTreeMap<&'static str, u64>,
}

impl Used {
    fn count(&mut self, helper: i32, map: Option<MapKind>) {
        *self.helpers.entry(helper).or_default() += 1;
        if let Some(map) = map {
            *self.maps.entry(map.name()).or_default() += 1;
        }
    }
}

impl AddAssign<&Used> for Used {
    fn add_assign(&mut self, other: &Used) {
        for (helper, count) in &other.helpers {
            *self.helpers.entry(*helper).or_default() += count;
        }
        for (map, count) in &other.maps {
            *self.maps.entry(map).or_default() += count;
        }
    }
}

/// Counts of the runs of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Runs.
    pub runs: u64,
    /// Instructions that were checked.
    pub steps: u64,
    /// Runs that ended at the limit of instructions.
    pub unfinished: u64,
    /// True if the verification with every scalar precise came to its end, too.
    pub all_precise: bool,
    /// Upper halves that were filled with garbage.
    pub filled: u64,
    /// Facts of the program.
    pub facts: FactCounts,
    /// Helpers and maps that were used.
    pub used: Used,
}

/// Claims of a verification about every run.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// States in normal mode.
    pub normal: RecordedStates,
    /// States with every scalar precise, if that is not too complex.
    pub all_precise: Option<RecordedStates>,
    /// Facts in normal mode.
    pub facts: ProgramFacts,
}

/// A program on which a run escaped, reduced.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed that made it.
    pub seed: u64,
    /// A program with as few instructions as still show an escape, as a case.
    pub case: String,
    /// The escape.
    pub escape: Escape,
}

/// Outcome of many programs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Programs that were made.
    pub programs: u64,
    /// Programs that were run.
    pub accepted: u64,
    /// Of these, those with every scalar precise, too.
    pub all_precise: u64,
    /// Runs.
    pub runs: u64,
    /// Instructions that were checked.
    pub steps: u64,
    /// Runs that ended at the limit of instructions.
    pub unfinished: u64,
    /// Upper halves that were filled with garbage.
    pub filled: u64,
    /// Facts of the programs.
    pub facts: FactCounts,
    /// Helpers and maps that were used.
    pub used: Used,
    /// Accepted programs that could not be run, by what they use.
    pub uncovered: BTreeMap<String, u64>,
    /// Number of programs with an escape.
    pub escaped: u64,
    /// The first of them.
    pub found: Vec<Found>,
}

impl Tally {
    /// Counts the outcome of a program; returns the escape, if it is one.
    pub fn count(&mut self, outcome: Outcome) -> Option<Escape> {
        self.programs += 1;
        match outcome {
            Outcome::Refused => None,
            Outcome::Uncovered(what) => {
                *self.uncovered.entry(what).or_default() += 1;
                None
            }
            Outcome::Contained(runs) => {
                self.accepted += 1;
                self.all_precise += u64::from(runs.all_precise);
                self.runs += runs.runs;
                self.steps += runs.steps;
                self.unfinished += runs.unfinished;
                self.filled += runs.filled;
                self.facts += runs.facts;
                self.used += &runs.used;
                None
            }
            Outcome::Escaped(escape) => {
                self.accepted += 1;
                self.escaped += 1;
                Some(escape)
            }
        }
    }
}

/// Runs so many generated programs that the verifier accepts, from a seed on, each with so
/// many inputs.
///
/// # Errors
/// If what is generated is no program.
pub fn check_generated(
    kernel: &Kernel,
    registry: &Registry,
    seed: u64,
    programs: u64,
    inputs: u64,
    mut progress: impl FnMut(&Tally),
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let types = kernel.btf().ok_or("the kernel has no BTF")?;
    for seed in seed.. {
        if tally.accepted == programs {
            break;
        }
        let program = generated_runnable(seed, types)?;
        let outcome = check(&program, kernel, registry, inputs);
        if let Some(escape) = tally.count(outcome)
            && tally.found.len() < KEPT
        {
            let shows = |fewer: &Program| match check(fewer, kernel, registry, inputs) {
                Outcome::Escaped(escape) => Some(escape),
                _ => None,
            };
            let (least, escape) =
                testkit::verifier::reduce(&program, escape, REDUCTION_RUNS, shows);
            tally.found.push(Found {
                seed,
                case: Case::new(least).to_string(),
                escape,
            });
        }
        progress(&tally);
    }
    Ok(tally)
}

/// Runs a program with so many inputs.
pub fn check(program: &Program, kernel: &Kernel, registry: &Registry, inputs: u64) -> Outcome {
    check_changed(program, kernel, registry, inputs, |_| ())
}

/// As [`check`], with evidence that was changed: what a test does to see that a wrong
/// claim is found.
pub fn check_changed(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    inputs: u64,
    change: impl FnOnce(&mut Evidence),
) -> Outcome {
    let setting = match Setting::new(program, kernel) {
        Ok(setting) => setting,
        Err(what) => return Outcome::Uncovered(what),
    };
    let mut evidence = match gather(program, kernel, registry) {
        Ok(evidence) => evidence,
        Err(outcome) => return outcome,
    };
    change(&mut evidence);
    let mut counts = Runs {
        all_precise: evidence.all_precise.is_some(),
        ..Runs::default()
    };
    let insns = program.decode();
    counts.facts.add(&insns, &evidence.facts);
    let normal = Some((Claim::PreciseScalars, evidence.normal));
    let all_precise = evidence
        .all_precise
        .map(|states| (Claim::AllScalars, states));
    let recordings = [normal, all_precise].into_iter().flatten();
    let runner = Runner {
        program: Arc::new(CheckedProgram::new(resolved(insns, kernel))),
        setting,
        recordings: recordings
            .map(|(claim, states)| Recording { claim, states })
            .collect(),
        claims: Claims::new(evidence.facts),
    };
    for seed in 0..inputs {
        match runner.run(seed, &mut counts) {
            Ok(()) => {}
            Err(End::Escaped(escape)) => return Outcome::Escaped(escape),
            Err(End::Uncovered(what)) => return Outcome::Uncovered(what),
        }
    }
    Outcome::Contained(Box::new(counts))
}

/// The instructions with calls of kernel functions by their numbers.
fn resolved(mut insns: Vec<Insn>, kernel: &Kernel) -> Vec<Insn> {
    for insn in &mut insns {
        if let Some(function) = KernelFunction::from_insn(kernel, insn) {
            *insn = function.resolved(*insn);
        }
    }
    insns
}

/// Verifies a program in both modes.
fn gather(program: &Program, kernel: &Kernel, registry: &Registry) -> Result<Evidence, Outcome> {
    let mut options = Options {
        collect_facts: true,
        ..Options::default()
    };
    let (done, states) = verify_recorded(program, kernel, registry, &options, MAX_STATES);
    if done.verdict != Verdict::Accepted {
        return Err(Outcome::Refused);
    }
    let (Some(normal), Some(facts)) = (states, done.facts) else {
        return Err(Outcome::Uncovered("long verification".to_owned()));
    };
    options.stress = Stress {
        all_precise: true,
        ..Stress::default()
    };
    let (done, states) = verify_recorded(program, kernel, registry, &options, MAX_STATES);
    Ok(Evidence {
        normal,
        all_precise: states.filter(|_| done.verdict == Verdict::Accepted),
        facts,
    })
}

/// End of a run that does not count.
enum End {
    Escaped(Escape),
    Uncovered(String),
}

/// A program with what is claimed of it.
struct Runner {
    program: Arc<CheckedProgram>,
    setting: Setting,
    recordings: Vec<Recording>,
    claims: Claims,
}

/// Result of a run.
#[derive(PartialEq, Eq)]
struct Left {
    outcome: Option<u64>,
    packet: Option<Vec<u8>>,
    context: Vec<u8>,
    flow_keys: Option<Vec<u8>>,
    maps: Vec<Vec<u8>>,
}

impl Runner {
    /// Runs the program with the input of a seed, and again with garbage.
    fn run(&self, seed: u64, counts: &mut Runs) -> Result<(), End> {
        let escape = |at, what| {
            Err(End::Escaped(Escape {
                input: seed,
                at,
                what,
            }))
        };
        counts.runs += 1;
        let mut watcher = None;
        let (trap, left) = self.perform(seed, |places| {
            watcher.insert(Watcher::new(&self.recordings, &self.claims, places))
        })?;
        if let Some(watcher) = watcher {
            counts.steps += watcher.steps;
            counts.used += &watcher.used;
            if let Some((at, how)) = watcher.escape {
                return escape(at, how);
            }
        }
        match trap.map(|trap| (trap.to_string(), trap)) {
            None => {}
            Some((text, trap)) => match trap.reason {
                Reason::InstructionLimit(_) => {
                    counts.unfinished += 1;
                    return Ok(());
                }
                Reason::UnknownHelper(number) => {
                    let name = spec::calls::name(number).unwrap_or("unknown");
                    return Err(End::Uncovered(format!("helper {name}")));
                }
                Reason::Missing(missing) => return Err(End::Uncovered(missing.to_string())),
                // Runs have no objects of the kernel.
                _ if self.accesses_object(trap.at) => {
                    return Err(End::Uncovered("objects of the kernel".to_owned()));
                }
                _ => return escape(trap.at, text),
            },
        }
        let mut garbage = None;
        let (_, again) =
            self.perform(seed, |_| garbage.insert(Garbage::new(&self.claims.facts)))?;
        counts.filled += garbage.map_or(0, |garbage| garbage.filled);
        match again == left {
            true => Ok(()),
            false => escape(0, "fact: upper halves do not matter".to_owned()),
        }
    }

    /// True if the instruction may access an object of the kernel.
    fn accesses_object(&self, at: usize) -> bool {
        let fact = self.claims.facts.insns.get(at);
        fact.is_some_and(|fact| fact.accesses_object)
    }

    /// Runs the program once with an observer.
    fn perform<'s, 'o, O: Observer + 'o>(
        &'s self,
        seed: u64,
        observer: impl FnOnce(Places<'s>) -> &'o mut O,
    ) -> Result<(Option<Trap>, Left), End> {
        let mut input = self.setting.input(seed);
        let frame = input.packet.as_ref().map(PacketBuffer::to_vec);
        let legacy = (frame.as_deref()).map(|frame| Packet::whole(frame, &Metadata::UNKNOWN));
        let maps = self.setting.maps(seed).map_err(End::Uncovered)?;
        let guard = RunGuard::new();
        let prepared = self.setting.prepare(&guard, &mut input, &maps);
        let (mut memory, places) =
            prepared.map_err(|no_room| End::Uncovered(no_room.to_string()))?;
        let mut calls = self.setting.calls(&self.program, seed);
        let entry = Entry {
            arguments: [places.context, 0, 0, 0, 0],
        };
        let limits = Limits {
            instructions: MAX_STEPS,
            ..Limits::default()
        };
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: legacy.as_ref(),
        };
        let finish = (self.program).run_observed(cx, entry, &limits, observer(places));
        drop(memory);
        let left = Left {
            outcome: finish.outcome.as_ref().ok().copied(),
            packet: input.packet.as_ref().map(PacketBuffer::to_vec),
            context: input.context,
            flow_keys: input.flow_keys,
            maps: maps.contents(),
        };
        Ok((finish.outcome.err(), left))
    }
}
