//! Symbolic execution of a filter on all system calls at once, with state merging.
//!
//! Classic programs only jump forward, so one pass in program order visits every
//! predecessor of an instruction before the instruction itself. At each one there is a
//! single state: the path condition, and the accumulator, the index register and scratch
//! memory as functions of the system call's data. At join points the path conditions are
//! disjoined and registers become a conditional expression; dead registers are dropped
//! first, so most merges are free. Returns collect into one function from the data to an
//! outcome.
//!
//! Paths are not enumerated: the cost is the number of instructions times that of an
//! operation on decision diagrams, which [`super::value`] bounds.

use std::collections::HashMap;

use isa::classic::{AluOp, Cond, Insn, MEMORY_WORDS, Operand};

use super::TooComplex;
use super::diagram::{Diagram, OverBudget, Ref};
use super::outcome::{CLASSES, Outcome, Outcomes, data_limit};
use super::solver::Verdict;
use super::value::{ValueId, Values};
use crate::arch::ByteOrder;
use crate::filter::FilterProgram;
use crate::word::Word;
use spec::context::SECCOMP_DATA_SIZE;

/// Number of different data of one action up to which each becomes an outcome of its own;
/// beyond, the data are computed.
const MAX_DATA: usize = 16;

/// State shared by the filters under comparison.
pub(crate) struct Space {
    pub(crate) diagram: Diagram,
    pub(crate) values: Values,
    pub(crate) outcomes: Outcomes,
    /// Results of [`Space::example`] by condition.
    pub(crate) verdicts: HashMap<Ref, Verdict>,
    /// The instruction whose operations took the most steps so far, with these
    /// steps.
    costliest: (TooComplex, u64),
}

/// Budget of an analysis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Steps of the whole exploration.
    pub(crate) steps: u64,
    /// Steps of one operation before its result is named.
    pub(crate) steps_per_operation: u64,
}

/// Result of the symbolic execution of a filter.
pub(crate) struct Behaviour {
    /// The outcome of every system call.
    pub(crate) outcome: Ref,
    /// For every instruction, its path condition.
    pub(crate) reached: Vec<Ref>,
}

const REGISTERS: usize = 2 + MEMORY_WORDS as usize;
const A: usize = 0;
const X: usize = 1;

const fn memory(k: u32) -> usize {
    2 + k as usize
}

/// Live registers of a state.
#[derive(Clone, Copy)]
struct State {
    condition: Ref,
    registers: [Option<ValueId>; REGISTERS],
}

impl Space {
    pub(crate) fn new(effort: Effort) -> Space {
        Space {
            diagram: Diagram::new(effort.steps),
            values: Values::new(effort.steps_per_operation),
            outcomes: Outcomes::default(),
            verdicts: HashMap::new(),
            costliest: (TooComplex { filter: 0, insn: 0 }, 0),
        }
    }

    /// The error of a query that exceeded its budget: it names the most expensive
    /// instruction.
    pub(crate) fn too_complex(&self) -> TooComplex {
        self.costliest.0
    }

    /// Executes a filter symbolically; `filter` is its index in the stack.
    pub(crate) fn explore(
        &mut self,
        filter: usize,
        program: &FilterProgram,
    ) -> Result<Behaviour, TooComplex> {
        let insns = program.checked().insns();
        let zero = self.values.constant(&self.diagram, 0);
        let mut walk = Walk {
            space: self,
            live: live_registers(insns),
            order: program.byte_order(),
            states: vec![None; insns.len()],
            behaviour: Behaviour {
                outcome: Ref::FALSE,
                reached: vec![Ref::FALSE; insns.len()],
            },
        };
        let mut registers = [None; REGISTERS];
        registers[A] = Some(zero);
        registers[X] = Some(zero);
        let start = State {
            condition: Ref::TRUE,
            registers,
        };
        let at_start = TooComplex { filter, insn: 0 };
        walk.arrive(0, start).map_err(|OverBudget| at_start)?;
        for (insn, &decoded) in insns.iter().enumerate() {
            let Some(state) = walk.states[insn].take() else {
                continue;
            };
            let place = TooComplex { filter, insn };
            let before = walk.space.diagram.budget();
            walk.behaviour.reached[insn] = state.condition;
            walk.execute(insn, decoded, state)
                .map_err(|OverBudget| place)?;
            let steps = before - walk.space.diagram.budget();
            if steps > walk.space.costliest.1 {
                walk.space.costliest = (place, steps);
            }
        }
        Ok(walk.behaviour)
    }

    /// The outcome of two filters together, the second installed later.
    pub(crate) fn combine(&mut self, older: Ref, newer: Ref) -> Result<Ref, OverBudget> {
        let outcomes = &self.outcomes;
        let rank = |leaf| outcomes.at(leaf).action().rank();
        self.diagram.pair(older, newer, &mut |older, newer| {
            if rank(newer) <= rank(older) {
                newer
            } else {
                older
            }
        })
    }

    /// An outcome function with every outcome reduced to its effect.
    pub(crate) fn effect(&mut self, outcome: Ref) -> Result<Ref, OverBudget> {
        let outcomes = &mut self.outcomes;
        self.diagram
            .map(outcome, super::diagram::LEAF_LEVEL, &mut |leaf| {
                let effect = outcomes.at(leaf.value().unwrap_or_default()).effect();
                outcomes.leaf(effect)
            })
    }
}

struct Walk<'a> {
    space: &'a mut Space,
    live: Vec<u32>,
    order: ByteOrder,
    states: Vec<Option<State>>,
    behaviour: Behaviour,
}

impl Walk<'_> {
    /// Merges a state into that of an instruction.
    fn arrive(&mut self, at: usize, mut state: State) -> Result<(), OverBudget> {
        if state.condition == Ref::FALSE {
            return Ok(());
        }
        for (register, value) in state.registers.iter_mut().enumerate() {
            if self.live[at] >> register & 1 == 0 {
                *value = None;
            }
        }
        if let Some(other) = self.states[at] {
            let Space {
                diagram, values, ..
            } = &mut *self.space;
            for (value, other) in state.registers.iter_mut().zip(other.registers) {
                *value = match (*value, other) {
                    (Some(value), Some(other)) if value != other => {
                        Some(values.choice(diagram, state.condition, value, other)?)
                    }
                    (value, other) => value.or(other),
                };
            }
            state.condition = values.or(diagram, state.condition, other.condition)?;
        }
        self.states[at] = Some(state);
        Ok(())
    }

    fn execute(&mut self, at: usize, insn: Insn, mut state: State) -> Result<(), OverBudget> {
        match insn {
            Insn::RetK(value) => return self.finish(state.condition, Outcome::of(value)),
            Insn::RetA => return self.finish_computed(state),
            Insn::Goto(skipped) => return self.arrive(at + 1 + skipped as usize, state),
            Insn::Jump { cond, src, jt, jf } => {
                let a = self.read(&state, A);
                let b = self.operand(&state, src);
                let Space {
                    diagram, values, ..
                } = &mut *self.space;
                let holds = values.compare(diagram, cond, a, b)?;
                let fails = values.minus(diagram, state.condition, holds)?;
                let holds = values.and(diagram, state.condition, holds)?;
                let taken = State {
                    condition: holds,
                    ..state
                };
                self.arrive(at + 1 + usize::from(jt), taken)?;
                let passed = State {
                    condition: fails,
                    ..state
                };
                return self.arrive(at + 1 + usize::from(jf), passed);
            }
            Insn::Alu { op, src } => {
                let a = self.read(&state, A);
                let b = self.operand(&state, src);
                if matches!(op, AluOp::Div | AluOp::Mod) && src == Operand::X {
                    state.condition = self.divisor(state.condition, b)?;
                }
                let Space {
                    diagram, values, ..
                } = &mut *self.space;
                state.registers[A] = Some(values.alu(diagram, op, a, b)?);
            }
            Insn::Neg => {
                let a = self.read(&state, A);
                let Space {
                    diagram, values, ..
                } = &mut *self.space;
                state.registers[A] = Some(values.negated(diagram, a)?);
            }
            Insn::LoadAbs { k, .. } => state.registers[A] = Some(self.word(k)?),
            Insn::LoadLen => state.registers[A] = Some(self.constant(SECCOMP_DATA_SIZE as u32)),
            Insn::LoadXLen => state.registers[X] = Some(self.constant(SECCOMP_DATA_SIZE as u32)),
            Insn::LoadImm(k) => state.registers[A] = Some(self.constant(k)),
            Insn::LoadXImm(k) => state.registers[X] = Some(self.constant(k)),
            Insn::LoadMem(k) => state.registers[A] = Some(self.read(&state, memory(k))),
            Insn::LoadXMem(k) => state.registers[X] = Some(self.read(&state, memory(k))),
            Insn::Store(k) => state.registers[memory(k)] = Some(self.read(&state, A)),
            Insn::StoreX(k) => state.registers[memory(k)] = Some(self.read(&state, X)),
            Insn::Tax => state.registers[X] = Some(self.read(&state, A)),
            Insn::Txa => state.registers[A] = Some(self.read(&state, X)),
            // The checker rejects these in seccomp filters.
            Insn::LoadInd { .. } | Insn::LoadXMsh(_) | Insn::Invalid(_) => {
                return self.finish(state.condition, Outcome::of(0));
            }
        }
        self.arrive(at + 1, state)
    }

    /// A register; one that was never written is zero.
    fn read(&mut self, state: &State, register: usize) -> ValueId {
        match state.registers[register] {
            Some(value) => value,
            None => self.constant(0),
        }
    }

    fn operand(&mut self, state: &State, operand: Operand) -> ValueId {
        match operand {
            Operand::K(k) => self.constant(k),
            Operand::X => self.read(state, X),
        }
    }

    fn constant(&mut self, number: u32) -> ValueId {
        self.space.values.constant(&self.space.diagram, number)
    }

    fn word(&mut self, offset: u32) -> Result<ValueId, OverBudget> {
        match Word::at(offset, self.order) {
            Some(word) => self.space.values.word(&mut self.space.diagram, word),
            None => Ok(self.constant(0)),
        }
    }

    /// Ends paths whose divisor is zero (they return 0); returns the condition of the
    /// others.
    fn divisor(&mut self, condition: Ref, divisor: ValueId) -> Result<Ref, OverBudget> {
        let zero = self.constant(0);
        let Space {
            diagram, values, ..
        } = &mut *self.space;
        let is_zero = values.compare(diagram, Cond::Eq, divisor, zero)?;
        let ends = values.and(diagram, condition, is_zero)?;
        let goes_on = values.minus(diagram, condition, is_zero)?;
        self.finish(ends, Outcome::of(0))?;
        Ok(goes_on)
    }

    fn finish(&mut self, condition: Ref, outcome: Outcome) -> Result<(), OverBudget> {
        let leaf = self.space.outcomes.leaf(outcome);
        let before = self.behaviour.outcome;
        // Every call reaches a return, so the first outcome is the default for all others.
        self.behaviour.outcome = match before {
            Ref::FALSE => leaf,
            before => self.space.diagram.choose(condition, leaf, before)?,
        };
        Ok(())
    }

    /// Returns the accumulator: one outcome for each action that it can have.
    fn finish_computed(&mut self, state: State) -> Result<(), OverBudget> {
        let value = self.read(&state, A);
        if let Some(number) = self.space.values.as_constant(value) {
            return self.finish(state.condition, Outcome::of(number));
        }
        for &(first, last) in CLASSES {
            let condition = self.within_class(state.condition, value, first, last)?;
            if condition == Ref::FALSE {
                continue;
            }
            match data_limit(first << 16) {
                None => self.finish(condition, Outcome::of(first << 16))?,
                Some(limit) => self.finish_with_data(condition, value, first << 16, limit)?,
            }
        }
        Ok(())
    }

    fn within_class(
        &mut self,
        condition: Ref,
        value: ValueId,
        first: u32,
        last: u32,
    ) -> Result<Ref, OverBudget> {
        let first = self.constant(first << 16);
        let last = self.constant(last << 16 | 0xffff);
        let Space {
            diagram, values, ..
        } = &mut *self.space;
        let reaches = values.compare(diagram, Cond::Ge, value, first)?;
        let beyond = values.compare(diagram, Cond::Gt, value, last)?;
        let inside = values.and(diagram, condition, reaches)?;
        values.minus(diagram, inside, beyond)
    }

    fn finish_with_data(
        &mut self,
        condition: Ref,
        value: ValueId,
        class: u32,
        limit: u16,
    ) -> Result<(), OverBudget> {
        let low = self.constant(0xffff);
        let Space {
            diagram, values, ..
        } = &mut *self.space;
        let mut data = values.alu(diagram, AluOp::And, value, low)?;
        if limit < u16::MAX {
            data = values.at_most(diagram, data, limit.into())?;
        }
        let bits = *values.bits(data);
        let Space {
            diagram, values, ..
        } = &mut *self.space;
        let mut cases = vec![(condition, 0u32)];
        for (at, &bit) in bits.iter().enumerate() {
            let mut split = Vec::new();
            for (condition, number) in cases {
                let with = values.and(diagram, condition, bit)?;
                let without = values.minus(diagram, condition, bit)?;
                split.extend([(with, number | 1 << at), (without, number)]);
            }
            split.retain(|&(condition, _)| condition != Ref::FALSE);
            if split.len() > MAX_DATA {
                return self.finish(condition, Outcome::Computed { class, data });
            }
            cases = split;
        }
        for (condition, number) in cases {
            self.finish(condition, Outcome::of(class | number))?;
        }
        Ok(())
    }
}

/// The live-in set of each instruction, as a bit set.
fn live_registers(insns: &[Insn]) -> Vec<u32> {
    let mut live = vec![0u32; insns.len() + 1];
    for (at, &insn) in insns.iter().enumerate().rev() {
        let next = live[at + 1];
        let a = 1 << A;
        let x = 1 << X;
        let operand = |src| if src == Operand::X { x } else { 0 };
        live[at] = match insn {
            Insn::LoadAbs { .. } | Insn::LoadLen | Insn::LoadImm(_) => next & !a,
            Insn::LoadXImm(_) | Insn::LoadXLen => next & !x,
            Insn::LoadMem(k) => next & !a | 1 << memory(k),
            Insn::LoadXMem(k) => next & !x | 1 << memory(k),
            Insn::Store(k) => next & !(1 << memory(k)) | a,
            Insn::StoreX(k) => next & !(1 << memory(k)) | x,
            Insn::Alu { src, .. } => next | a | operand(src),
            Insn::Neg => next | a,
            Insn::Tax => next & !x | a,
            Insn::Txa => next & !a | x,
            Insn::Jump { src, jt, jf, .. } => {
                live[at + 1 + usize::from(jt)] | live[at + 1 + usize::from(jf)] | a | operand(src)
            }
            Insn::Goto(skipped) => live[at + 1 + skipped as usize],
            Insn::RetA => a,
            Insn::RetK(_) | Insn::LoadInd { .. } | Insn::LoadXMsh(_) | Insn::Invalid(_) => 0,
        };
    }
    live
}
