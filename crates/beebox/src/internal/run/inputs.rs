//! What fuzzing needs of an object and its programs: runs on inputs one after the other, counters that are
//! emptied after each, maps that are set back, and comparisons that a run made.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ::kernel::maps::{Journal, Map, RunGuard, Written};
use ::kernel::programs::{TestInput, verdict};
use interp::checked::{Limits, Moment, Observer};
use isa::ebpf::{Callee, Imm64, Insn, Operand, Width};
use spec::SplitMix;
use spec::helpers::HelperId;
use vm::Counters;

use super::counts::ProgramCounts;
use super::prepared::Prepared;
use super::random::RunRandom;
use super::{LoadedObject, ObjectMap, PrintedText, RunError, RunnableProgram, TestRunOutput};

/// The state that an object is set back to.
pub(crate) struct Marked {
    /// Global variables.
    globals: Vec<(Arc<Map>, Vec<u8>)>,
}

/// Number of the first map of global variables, for what observes a reset.
const GLOBALS: usize = 1 << 16;

/// Bytes of global variables that are compared at once.
const PIECE: usize = 4096;

impl LoadedObject {
    /// Makes the state of now the one that [`LoadedObject::reset`] sets the maps back to.
    pub(crate) fn mark(&self) -> Marked {
        let mut globals = Vec::new();
        for map in self.maps() {
            if let Some(journal) = map.map.of_kind::<Journal>() {
                journal.mark();
            } else if is_variables(map)
                && !map.is_constant()
                && let Some(value) = map.map.operations().direct_value()
            {
                globals.push((Arc::clone(&map.map), value.to_vec()));
            }
        }
        Marked { globals }
    }

    /// Sets the maps back.
    pub(crate) fn reset(&self, marked: &Marked) {
        self.reset_observed(marked, |_, _, _| {});
    }

    /// Sets the maps back, and calls a function with each word that differs: the number of the map, the place
    /// in its values, and what was there.
    #[inline]
    pub(crate) fn reset_observed(&self, marked: &Marked, mut each: impl FnMut(usize, usize, u64)) {
        for (number, map) in self.maps().enumerate() {
            match map.map.of_kind::<Journal>() {
                Some(journal) => {
                    journal.reset_observed(&mut |place, word| each(number, place, word));
                }
                None => map.map.operations().reset(),
            }
        }
        let mut now = [0; PIECE];
        for (number, (map, before)) in marked.globals.iter().enumerate() {
            let Some(value) = map.operations().direct_value() else {
                continue;
            };
            for (at, before) in (0..).step_by(PIECE).zip(before.chunks(PIECE)) {
                let now = &mut now[..before.len()];
                value.read(at, now);
                if now != before {
                    let words = now.chunks(4).zip(before.chunks(4)).enumerate();
                    for (word, (now, _)) in words.filter(|(_, (now, before))| now != before) {
                        let mut bytes = [0; 8];
                        bytes[..now.len()].copy_from_slice(now);
                        each(GLOBALS + number, at + word * 4, u64::from_le_bytes(bytes));
                    }
                    value.write(at, before);
                }
            }
        }
    }

    /// True if runs leave something in maps or variables for later ones.
    pub(crate) fn has_state(&self, marked: &Marked) -> bool {
        let kept = self.kept_maps().next().is_some();
        let mut journaled = self.maps();
        kept || !marked.globals.is_empty()
            || journaled.any(|map| map.map.of_kind::<Journal>().is_some() && !map.is_constant())
    }

    /// Names of the maps that are not set back.
    pub(crate) fn kept_maps(&self) -> impl Iterator<Item = &str> {
        let kept = self.maps().filter(|map| {
            let kind = map.map.kind();
            map.map.of_kind::<Journal>().is_none()
                && !is_variables(map)
                && !map.is_constant()
                && !kind.has_records()
                && !kind.is_map_of_maps()
                && map.map.operations().program(0).is_none()
        });
        kept.map(|map| map.def.name.as_str())
    }

    /// What inputs may have written to a map, as [`Journal::written`].
    pub(crate) fn written(&self, map: &ObjectMap) -> Option<Vec<Written>> {
        map.map.of_kind::<Journal>()?.written()
    }

    /// Bytes of the context up to the last one that the program at a place accesses.
    pub(crate) fn context_bytes(&self, place: usize) -> usize {
        self.shared.programs[place].rules.context_bytes() as usize
    }

    /// Number of counters of its programs.
    pub(crate) fn counters(&self) -> usize {
        let parts = self.shared.programs.iter().flat_map(counters);
        parts.map(Counters::len).sum()
    }

    /// By counter: instructions that each of its increments stands for.
    pub(crate) fn counter_weights(&self) -> Vec<u32> {
        let mut weights = Vec::new();
        for prepared in &self.shared.programs {
            let counts = prepared.counts.as_ref();
            let counting = counts.and_then(ProgramCounts::counting);
            match counting.filter(|_| prepared.code.is_some()) {
                Some(counting) => weights.extend(counting.weights(&prepared.program.decode())),
                // Runs in the checked engine have their number of instructions.
                None => {
                    let len: usize = counters(prepared).map(Counters::len).sum();
                    weights.resize(weights.len() + len, 0);
                }
            }
        }
        weights
    }

    /// Calls a function with each counter that is not zero, and sets it to zero.
    #[inline]
    pub(crate) fn drain_counters(&self, mut each: impl FnMut(usize, u64)) {
        let mut start = 0;
        for part in self.shared.programs.iter().flat_map(counters) {
            part.drain(|index, count| each(start + index, count));
            start += part.len();
        }
    }

    /// How often runs executed the instructions of each program, by slot.
    pub(crate) fn executed_insns(&self) -> Vec<Vec<u64>> {
        let programs = self.shared.programs.iter();
        let counts = programs.map(|prepared| match &prepared.counts {
            Some(counts) => counts.counts(&prepared.program).insns,
            None => Vec::new(),
        });
        counts.collect()
    }

    /// By program, slot: a run may come there.
    pub(crate) fn reached_insns(&self) -> Vec<Vec<bool>> {
        let programs = self.shared.programs.iter();
        let reached = programs.map(|prepared| match &prepared.counts {
            Some(counts) => counts.reached().to_vec(),
            None => Vec::new(),
        });
        reached.collect()
    }

    /// True if values of maps have timers.
    pub(crate) fn has_timers(&self) -> bool {
        self.shared.used_timers().is_some()
    }

    /// True if a program that was loaded calls a helper with this property.
    pub(crate) fn calls(&self, has_property: fn(HelperId) -> bool) -> bool {
        let mut programs = self.shared.programs.iter();
        programs.any(|prepared| {
            prepared.program.decode().iter().any(|insn| match insn {
                Insn::Call(callee) => HelperId::of_call(*callee).is_some_and(has_property),
                _ => false,
            })
        })
    }

    /// Numbers that the programs compare with, and those of keys in maps.
    pub(crate) fn compared_numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::new();
        for prepared in &self.shared.programs {
            for insn in prepared.program.decode() {
                match insn {
                    Insn::Jump {
                        src: Operand::Imm(imm),
                        ..
                    } => numbers.push(u64::from(imm as u32)),
                    Insn::LoadImm64 {
                        imm: Imm64::Value(number),
                        ..
                    } => numbers.push(number.get()),
                    _ => {}
                }
            }
        }
        numbers.extend(self.numbers_of_keys());
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Parts of keys that maps hold, such as addresses and ports.
    fn numbers_of_keys(&self) -> Vec<u64> {
        const MOST: usize = 256;
        let mut numbers = Vec::new();
        for map in self.maps().filter(|map| map.def.params.key_size > 0) {
            let kind = map.map.kind();
            if is_variables(map) || kind.is_array() || map.map.of_kind::<Journal>().is_none() {
                continue;
            }
            for entry in map.iter_entries().take(MOST) {
                let Ok((key, _)) = entry else {
                    break;
                };
                let words = key.chunks_exact(4).filter_map(|part| part.first_chunk());
                numbers.extend(words.map(|part| u64::from(u32::from_le_bytes(*part))));
                let halves = key.chunks_exact(2).filter_map(|part| part.first_chunk());
                numbers.extend(halves.map(|part| u64::from(u16::from_le_bytes(*part))));
            }
        }
        numbers.truncate(MOST);
        numbers
    }
}

/// The counters that runs of a program increment in its engine.
#[inline]
fn counters(prepared: &Prepared) -> impl Iterator<Item = &Counters> {
    let counts = prepared.counts.as_ref();
    counts
        .into_iter()
        .flat_map(|counts| counts.counters(prepared.code.is_some()))
}

fn is_variables(map: &ObjectMap) -> bool {
    map.def.initial_value().is_some()
}

impl ObjectMap {
    /// True if neither programs nor users write to it.
    fn is_constant(&self) -> bool {
        self.map.is_constant()
    }
}

/// Two numbers that a jump compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Compared {
    pub(crate) left: u64,
    pub(crate) right: u64,
}

/// Most comparisons of a run that are kept.
const MOST_COMPARED: usize = 256;

/// Notes the numbers that jumps compare.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    pub(super) found: Vec<Compared>,
}

impl Observer for Comparisons {
    #[inline]
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        let Insn::Jump {
            width, dst, src, ..
        } = moment.insn()
        else {
            return ControlFlow::Continue(());
        };
        let right = match src {
            Operand::Reg(reg) => moment.registers[reg.index()],
            Operand::Imm(imm) => i64::from(imm) as u64,
        };
        let mask = match width {
            Width::W32 => u64::from(u32::MAX),
            Width::W64 => u64::MAX,
        };
        let left = moment.registers[dst.index()] & mask;
        let right = right & mask;
        let compared = Compared { left, right };
        // Pointers into the same object.
        let is_of_addresses = left.min(right) >> 32 != 0 && left.abs_diff(right) < 1 << 16;
        if left != right
            && !is_of_addresses
            && self.found.len() < MOST_COMPARED
            && !self.found.contains(&compared)
        {
            self.found.push(compared);
        }
        ControlFlow::Continue(())
    }
}

/// Packet, context and machine of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunInput<'i> {
    pub(crate) frame: &'i [u8],
    /// None for that of a test run without one.
    pub(crate) context: Option<&'i [u8]>,
    pub(crate) time: u64,
    /// Seed of the random numbers; those of the object without one.
    pub(crate) seed: Option<u64>,
}

impl RunnableProgram<'_> {
    /// Runs the program as a test run does, in the memory of the run before; the low 32 bits of `r0`.
    /// [`RunnableProgram::captured`] is what it left.
    #[inline]
    pub(crate) fn run_input(
        &mut self,
        given: RunInput<'_>,
        guard: &mut RunGuard,
    ) -> Result<u32, RunError> {
        self.prepared.check_attach_type()?;
        let rules = self.prepared.rules;
        let refilled = match (self.captured.take(), given.context) {
            (Some(mut input), None) => rules.refill(&mut input, given.frame).then_some(input),
            _ => None,
        };
        let mut input = match refilled {
            Some(input) => input,
            None => {
                let context = given.context.unwrap_or_default();
                let input = rules.test_input(given.frame, context, self.services.system());
                let input = input.map_err(|errno| RunError::Context {
                    errno,
                    len: context.len(),
                    kind: self.kind(),
                });
                Box::new(input?)
            }
        };
        self.services.packet_time = given.time;
        if let Some(seed) = given.seed {
            let random = RunRandom::Own(SplitMix::new(seed));
            self.services.set_random(random);
        }
        if !self.services.printed.is_empty() {
            self.services.printed = PrintedText::default();
        }
        let result = self.run(&mut input, guard);
        let result = match result {
            Ok(retval) => {
                let ended = input.end_run(retval, self.services.system());
                ended.map_err(RunError::Group)
            }
            Err(error) => Err(error),
        };
        self.captured = Some(input);
        result
    }

    /// The limits of runs.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// What the last run gave.
    pub(crate) fn output(&self, retval: u32) -> TestRunOutput {
        let input = self.captured();
        TestRunOutput {
            retval,
            verdict: verdict(self.kind(), retval),
            redirect: input.and_then(|input| input.redirect(retval)),
            data_out: input.map(TestInput::data_out).unwrap_or_default(),
            ctx_out: input.map(TestInput::context_out).unwrap_or_default(),
            duration: Duration::ZERO,
            printk: self.printed().clone(),
            records: Vec::new(),
        }
    }

    /// Runs the program as [`RunnableProgram::run_input`] in the checked engine; the numbers that its jumps
    /// compared.
    pub(crate) fn comparisons(
        &mut self,
        given: RunInput<'_>,
        guard: &mut RunGuard,
    ) -> Vec<Compared> {
        self.attached.watchers.comparing = Some(Box::default());
        // What the run gives was seen already.
        let _ = self.run_input(given, guard);
        self.attached
            .watchers
            .comparing
            .take()
            .map(|comparing| comparing.found)
            .unwrap_or_default()
    }
}
