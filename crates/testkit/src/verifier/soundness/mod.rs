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
mod setting;
mod watch;

use std::collections::BTreeMap;

use interp::checked::{self, CheckedContext, Entry, Limits, Observer, Reason, Trap};
use kernel::maps::RunGuard;
use packet::{Metadata, Packet};
use program::Program;
use spec::Kernel;
use spec::registry::Registry;
use verifier::{Options, ProgramFacts, RecordedStates, Stress, Verdict, verify_recorded};

pub use facts::FactCounts;

use super::simple::{Target, assembled, generated, generated_program};
use contain::Claim;
use facts::{Claims, Garbage};
use setting::Setting;
use watch::{Recording, Watcher};

/// Instructions of a run at most.
const MAX_STEPS: u64 = 20_000;
/// States of a verification at most.
const MAX_STATES: usize = 200_000;
/// Escapes that are kept.
const KEPT: usize = 20;

/// A run outside of what was proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    /// Seed of the run's input.
    pub input: u64,
    /// The instruction.
    pub at: usize,
    /// What is outside of what, or the trap.
    pub what: String,
}

/// What became of the runs of one program.
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

/// Counts of the runs of one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
}

/// What a verification claims of every run.
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
    /// What it is a program of.
    pub target: Target,
    /// Its text, with as few lines as still show an escape.
    pub text: String,
    /// The escape.
    pub escape: Escape,
}

/// What became of many programs.
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
pub fn check_generated(
    kernel: &Kernel,
    registry: &Registry,
    seed: u64,
    programs: u64,
    inputs: u64,
    mut progress: impl FnMut(&Tally),
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for seed in seed.. {
        if tally.accepted == programs {
            break;
        }
        let (target, text) = generated(seed);
        let outcome = check_text(kernel, registry, target, &text, inputs)
            .map_err(|error| format!("seed {seed}: {error}\n{text}"))?;
        if let Some(escape) = tally.count(outcome)
            && tally.found.len() < KEPT
        {
            let (text, escape) = reduce(kernel, registry, target, &text, escape, inputs);
            tally.found.push(Found {
                seed,
                target,
                text,
                escape,
            });
        }
        progress(&tally);
    }
    Ok(tally)
}

/// Runs a program of the grammar.
pub fn check_text(
    kernel: &Kernel,
    registry: &Registry,
    target: Target,
    text: &str,
    inputs: u64,
) -> Result<Outcome, String> {
    let program = generated_program(target, &assembled(text)?)?;
    Ok(check(&program, kernel, registry, inputs))
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
    let setting = match Setting::new(program, kernel.cpus()) {
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
        program: checked::CheckedProgram::new(insns),
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

/// How a run ends that does not count.
enum End {
    Escaped(Escape),
    Uncovered(String),
}

/// A program with what is claimed of it.
struct Runner {
    program: checked::CheckedProgram,
    setting: Setting,
    recordings: Vec<Recording>,
    claims: Claims,
}

/// What a run leaves behind.
#[derive(PartialEq, Eq)]
struct Left {
    outcome: Option<u64>,
    packet: Vec<u8>,
    context: Vec<u8>,
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
        let (trap, left) = self.perform(seed, |context| {
            watcher.insert(Watcher::new(&self.recordings, &self.claims, context))
        })?;
        if let Some(watcher) = watcher {
            counts.steps += watcher.steps;
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

    /// Runs the program once with an observer.
    fn perform<'o, O: Observer + 'o>(
        &self,
        seed: u64,
        observer: impl FnOnce(u64) -> &'o mut O,
    ) -> Result<(Option<Trap>, Left), End> {
        let input = self.setting.input(seed);
        let (mut packet, mut context) = (input.packet, input.context);
        let frame = packet.to_vec();
        let legacy = Packet::whole(&frame, &Metadata::UNKNOWN);
        let guard = RunGuard::new();
        let prepared = (self.setting).prepare(&guard, &mut packet, &mut context, seed);
        let (mut memory, at) = prepared.map_err(|no_room| End::Uncovered(no_room.to_string()))?;
        let mut calls = self.setting.calls(seed);
        let entry = Entry {
            arguments: [at, 0, 0, 0, 0],
        };
        let limits = Limits {
            instructions: MAX_STEPS,
            ..Limits::default()
        };
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: Some(&legacy),
        };
        let finish = self.program.run_observed(cx, entry, &limits, observer(at));
        drop(memory);
        let left = Left {
            outcome: finish.outcome.as_ref().ok().copied(),
            packet: packet.to_vec(),
            context,
            maps: self.setting.contents(&guard),
        };
        Ok((finish.outcome.err(), left))
    }
}

/// Takes out lines as long as a run escapes.
fn reduce(
    kernel: &Kernel,
    registry: &Registry,
    target: Target,
    text: &str,
    escape: Escape,
    inputs: u64,
) -> (String, Escape) {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut best = escape;
    let mut chunk = lines.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at + chunk <= lines.len() {
            let mut fewer = lines.clone();
            fewer.drain(at..at + chunk);
            match check_text(kernel, registry, target, &fewer.join("\n"), inputs) {
                Ok(Outcome::Escaped(escape)) => (best, lines) = (escape, fewer),
                _ => at += 1,
            }
        }
        chunk /= 2;
    }
    (lines.join("\n"), best)
}
