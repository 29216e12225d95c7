//! What the runs of an object executed: counts of instructions and jumps of all engines, and the
//! coverage that follows from them by the line_info of the programs.
//!
//! Code without checks increments counters at blocks ([`lower::Counting`]), the checked engine where runs
//! of slots one after the other begin and end; both are added.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use btf::StrOffset;
use interp::checked::{Moment, Observer};
use isa::ebpf::Insn;
use lower::{BranchCount, Counting};
use program::Program;
use report::coverage::{BranchCoverage, BranchPlace, Coverage, FunctionCoverage, LineCoverage};
use verifier::Proof;
use vm::Counters;

use super::LoadedObject;
use super::prepared::Prepared;
use super::shared::Shared;

/// The counters of a program.
pub(super) struct ProgramCounts {
    /// Those of code without checks, of verified programs.
    counting: Option<Counting>,
    /// By slot: a run can come there.
    reached: Vec<bool>,
    /// By slot: how often a run in the checked engine came there from another slot than the one before.
    starts: Counters,
    /// By slot: how often one did not go on with the next slot.
    ends: Counters,
}

/// How often the instructions of a program were executed.
pub(super) struct InsnCounts {
    /// By slot.
    pub(super) insns: Vec<u64>,
    /// Of conditional jumps, by slot.
    pub(super) branches: Vec<(usize, BranchCount)>,
}

impl ProgramCounts {
    /// Counters of zero. Of programs that were not verified every instruction can be reached.
    /// Several threads may run a program whose counters are shared.
    pub(super) fn new(program: &Program, proof: Option<&Proof>, is_shared: bool) -> ProgramCounts {
        let slots = program.decode().len();
        ProgramCounts {
            counting: proof.map(|proof| Counting::of(proof, is_shared)),
            reached: proof.map_or_else(|| vec![true; slots], lower::reached),
            starts: Counters::new(slots, is_shared),
            ends: Counters::new(slots, is_shared),
        }
    }

    /// The counters of code without checks.
    pub(super) fn counting(&self) -> Option<&Counting> {
        self.counting.as_ref()
    }

    /// By slot: a run can come there.
    #[cfg(feature = "fuzz")]
    pub(super) fn reached(&self) -> &[bool] {
        &self.reached
    }

    /// The counters of code without checks, or those of the checked engine.
    #[cfg(feature = "fuzz")]
    #[inline]
    pub(super) fn counters(&self, is_unchecked: bool) -> impl Iterator<Item = &Counters> {
        let counting = self.counting.as_ref().filter(|_| is_unchecked);
        let counting = counting.map(|counting| &counting.counters);
        let checked = [&self.starts, &self.ends].into_iter();
        counting
            .into_iter()
            .chain(checked.filter(move |_| !is_unchecked))
    }

    /// The counts of all engines.
    pub(super) fn counts(&self, program: &Program) -> InsnCounts {
        let mut insns = match &self.counting {
            Some(counting) => counting.insns(),
            None => vec![0; self.starts.len()],
        };
        let mut checked = Vec::with_capacity(insns.len());
        let mut running = 0;
        for (slot, count) in insns.iter_mut().enumerate() {
            running += self.starts.get(slot);
            checked.push(running);
            *count += running;
            running -= self.ends.get(slot);
        }
        let decoded = program.decode();
        // A jump to the next slot is no decision.
        let decides = |slot: &usize| matches!(&decoded[*slot], Insn::Jump { off, .. } if *off != 0);
        let both = BranchCount {
            jumped: Some(0),
            fell: Some(0),
        };
        let mut branches: Vec<(usize, BranchCount)> = match &self.counting {
            Some(counting) => counting.branches().collect(),
            None => (0..decoded.len()).map(|slot| (slot, both)).collect(),
        };
        branches.retain(|(slot, _)| decides(slot));
        for (slot, count) in &mut branches {
            let jumped = self.ends.get(*slot);
            let fell = checked[*slot] - jumped;
            count.jumped = count.jumped.map(|count| count + jumped);
            count.fell = count.fell.map(|count| count + fell);
        }
        InsnCounts { insns, branches }
    }
}

/// Counts what a run in the checked engine executes.
pub(super) struct CountObserver<'p> {
    programs: &'p [Prepared],
    /// The counters of the program that runs.
    current: Option<&'p ProgramCounts>,
}

impl<'p> CountObserver<'p> {
    /// The observer, if the programs of the object count.
    pub(super) fn new(programs: &'p [Prepared]) -> Option<CountObserver<'p>> {
        let counts = programs.iter().any(|prepared| prepared.counts.is_some());
        counts.then_some(CountObserver {
            programs,
            current: None,
        })
    }
}

impl Observer for CountObserver<'_> {
    const SEES_EACH: bool = false;
    const SEES_LEAPS: bool = true;

    fn before(&mut self, _: &Moment<'_, '_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn enter(&mut self, program: u32, at: usize) {
        let prepared = self.programs.get(program as usize);
        self.current = prepared.and_then(|prepared| prepared.counts.as_ref());
        if let Some(counts) = self.current {
            counts.starts.increment(at);
        }
    }

    #[inline]
    fn leap(&mut self, from: usize, to: usize) {
        if let Some(counts) = self.current {
            counts.ends.increment(from);
            counts.starts.increment(to);
        }
    }

    fn leave(&mut self, at: usize) {
        if let Some(counts) = self.current.take() {
            counts.ends.increment(at);
        }
    }
}

impl LoadedObject {
    /// What the runs executed until now, of an object that was loaded with
    /// [`LoadOptions::counts`](super::LoadOptions::counts); otherwise nothing.
    pub fn coverage(&self) -> Coverage {
        self.shared.coverage()
    }

    /// True if none of its programs has source lines.
    pub fn lacks_lines(&self) -> bool {
        let mut programs = self.shared.programs.iter();
        programs.all(|prepared| prepared.program.line_info().is_empty())
    }
}

impl Shared {
    /// What the runs executed until now.
    pub(super) fn coverage(&self) -> Coverage {
        let mut coverage = Coverage::default();
        for prepared in &self.programs {
            if let Some(counts) = &prepared.counts {
                add(&mut coverage, &prepared.program, counts);
            }
        }
        coverage
    }

    /// Instructions that the runs executed until now, by file and line, with names as in
    /// [`Shared::coverage`].
    #[cfg(feature = "html")]
    pub(super) fn line_costs(&self) -> BTreeMap<(String, u32), u64> {
        let mut costs = BTreeMap::new();
        for prepared in &self.programs {
            let program = &prepared.program;
            let (Some(counts), Some(types)) = (&prepared.counts, program.btf()) else {
                continue;
            };
            let decoded = program.decode();
            for (slot, count) in counts.counts(program).insns.into_iter().enumerate() {
                let line = program.line_at(slot as u32).filter(|line| line.line > 0);
                if let Some(line) = line
                    && count > 0
                    && !matches!(decoded[slot], Insn::Imm64High)
                {
                    let name = types.string(line.file).to_string();
                    let name = name.trim_start_matches("./").to_owned();
                    *costs.entry((name, line.line)).or_insert(0) += count;
                }
            }
        }
        costs
    }
}

/// Adds the counts of a program.
fn add(coverage: &mut Coverage, program: &Program, counts: &ProgramCounts) {
    let Some(types) = program.btf() else {
        return;
    };
    let InsnCounts { insns, branches } = counts.counts(program);
    let decoded = program.decode();
    let starts = program
        .subprogs()
        .iter()
        .map(|subprog| subprog.start as usize);
    let ends = starts.clone().skip(1).chain([insns.len()]);
    let mut branches = branches.into_iter().peekable();
    let mut names: HashMap<StrOffset, String> = HashMap::new();
    for (subprog, (start, end)) in program.subprogs().iter().zip(starts.zip(ends)) {
        // The most of the instructions of a line.
        let mut lines: BTreeMap<(StrOffset, u32), LineCoverage> = BTreeMap::new();
        let mut numbers: HashMap<(StrOffset, u32, u32), u32> = HashMap::new();
        let mut first = None;
        for slot in start..end {
            let branch = branches.next_if(|(at, _)| *at == slot);
            let Some(line) = program.line_at(slot as u32).filter(|line| line.line > 0) else {
                continue;
            };
            if matches!(decoded[slot], Insn::Imm64High) {
                continue;
            }
            let name = names.entry(line.file).or_insert_with(|| {
                let name = types.string(line.file).to_string();
                name.trim_start_matches("./").to_owned()
            });
            let file = coverage.files.entry(name.clone()).or_default();
            first = first.or(Some(line));
            let known = lines.entry((line.file, line.line)).or_default();
            known.count = known.count.max(insns[slot]);
            known.is_reachable |= counts.reached[slot];
            file.texts.entry(line.line).or_insert_with(|| {
                let text = types.string(line.text).to_string();
                text.trim_end().to_owned()
            });
            if let Some((_, count)) = branch {
                let key = (line.file, line.line, line.column);
                let number = numbers.entry(key).or_default();
                let place = BranchPlace {
                    line: line.line,
                    column: line.column,
                    number: *number,
                };
                *number += 1;
                let branch = BranchCoverage {
                    jumped: count.jumped,
                    fell: count.fell,
                };
                file.add_branch(place, branch);
            }
        }
        for ((file, number), line) in lines {
            if let Some(file) = coverage.files.get_mut(&names[&file]) {
                file.add_line(number, line);
            }
        }
        if let Some(file) = first.and_then(|line| coverage.files.get_mut(&names[&line.file])) {
            let function = FunctionCoverage {
                line: first.map_or(0, |line| line.line),
                count: insns[start],
                is_reachable: counts.reached[start],
            };
            file.add_function(&subprog.name, function);
        }
    }
}

#[cfg(all(test, feature = "trace"))]
mod tests;
