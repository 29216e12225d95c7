//! The control-flow walk before the verification proper (`check_cfg`).
//!
//! A depth-first search with an explicit stack over all subprograms, from the first
//! instruction along fall-through edges first. Every edge is looked at in the kernel's
//! order: the order decides which error comes first. On the way it marks
//!
//! * prune points, where states are compared: targets of jumps, conditional jumps,
//!   instructions behind calls, calls with callbacks, iterator steps;
//! * jump points, where the history notes how control got there;
//! * forced checkpoints: iterator steps, `may_goto`, calls with synchronous callbacks.
//!
//! Linear in instructions and edges.

use isa::ebpf::{Flow, RawInsn};
use spec::behaviour::Behaviour;
use spec::helpers::HelperId;
use spec::programs::ProgramType;

use super::Analysis;
use super::calls::{self, called_helper, is_function_address};
use super::subprogs::{is_table_jump, slots};
use crate::input::Input;
use crate::log::Sink;
use crate::{Result, log, refuse, refuse_if};

/// Edge from an instruction, in the order in which they are followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Fallthrough,
    Branch,
}

/// State of an instruction during the search.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Visit {
    Unseen,
    /// On the stack, with the edge last followed.
    Discovered(Option<Edge>),
    Explored,
}

struct Search<'s, 'e, 'l> {
    input: &'s Input<'e>,
    pass: &'s mut Sink<'l>,
    analysis: &'s mut Analysis,
    state: Vec<Visit>,
    stack: Vec<u32>,
}

/// Checks control flow and marks prune points (`check_cfg`) (`bpf_check_cfg`).
#[doc(alias = "bpf_check_cfg")]
pub(super) fn check_cfg(
    input: &Input<'_>,
    pass: &mut Sink<'_>,
    analysis: &mut Analysis,
) -> Result<()> {
    let count = input.program.insns().len();
    let mut search = Search {
        input,
        pass,
        analysis,
        state: vec![Visit::Unseen; count],
        stack: Vec::with_capacity(count),
    };
    search.walk(0)?;
    if let Some(callback) = search.analysis.exception_callback {
        search.walk(search.analysis.subprogs[callback].start)?;
    }
    search.check_reached()?;
    if input.rules.has(Behaviour::EarlyReturns) {
        note_early_returns(input, analysis);
    }
    Ok(())
}

/// Adds the way from what may end a function to its last exit (`visit_abnormal_return_insn`).
#[doc(alias = "visit_abnormal_return_insn")]
fn note_early_returns(input: &Input<'_>, analysis: &mut Analysis) {
    for (index, insn) in (0..).zip(input.program.insns()) {
        if insn.is_packet_load() || called_helper(*insn) == Some(HelperId::TailCall) {
            let exit = analysis.subprogs[analysis.subprog_containing(index)].exit_idx;
            analysis.jump_tables.insert(index, [exit].into());
        }
    }
}

impl Search<'_, '_, '_> {
    /// Explores what is reached from an instruction.
    fn walk(&mut self, from: u32) -> Result<()> {
        self.state[from as usize] = Visit::Discovered(None);
        self.stack.push(from);
        while let Some(&top) = self.stack.last() {
            if !self.visit(top)? {
                self.state[top as usize] = Visit::Explored;
                self.stack.pop();
            }
        }
        Ok(())
    }

    /// Follows the next edge of an instruction; false if none is left (`visit_insn`).
    #[doc(alias = "visit_insn")]
    fn visit(&mut self, index: u32) -> Result<bool> {
        let insn = self.input.program.insns()[index as usize];
        if is_function_address(insn) && self.input.rules.has(Behaviour::CallbacksAreFunctions) {
            return self.visit_call(index, insn, true);
        }
        if is_table_jump(self.input, insn) {
            return self.visit_table_jump(index);
        }
        let here = i64::from(index);
        match insn.opcode_flow() {
            Flow::Exit | Flow::Nowhere => Ok(false),
            Flow::Next | Flow::SkipOne | Flow::GotoReg(_) => {
                let width = match self.input.rules.has(Behaviour::WideLoadsWhole) {
                    true => slots(insn),
                    false => 1,
                };
                let next = here + i64::from(width);
                self.push(index, next, Edge::Fallthrough, self.may_close())
            }
            Flow::Call(target) => {
                if self.state[index as usize] == Visit::Discovered(None) {
                    self.mark_call(index, insn);
                }
                self.visit_call(index, insn, target.is_some())
            }
            Flow::Goto(offset) => {
                let target = here + i64::from(offset) + 1;
                if self.push(index, target, Edge::Fallthrough, true)? {
                    return Ok(true);
                }
                self.mark_join(target as u32);
                Ok(false)
            }
            Flow::Branch(offset) => {
                self.analysis.insns[index as usize].prune_point = true;
                if insn.is_may_goto() {
                    self.analysis.insns[index as usize].force_checkpoint = true;
                }
                if self.push(index, here + 1, Edge::Fallthrough, true)? {
                    return Ok(true);
                }
                self.push(index, here + i64::from(offset) + 1, Edge::Branch, true)
            }
        }
    }

    /// A jump to an address in a register, which goes by the tables of its function: those whose
    /// least target is in it (`visit_gotox_insn`, `create_jt`). All targets are discovered at once; true if there
    /// are new ones.
    #[doc(alias = "visit_gotox_insn")]
    #[doc(alias = "create_jt")]
    fn visit_table_jump(&mut self, index: u32) -> Result<bool> {
        let subprog = &self.analysis.subprogs[self.analysis.subprog_containing(index)];
        let (start, end) = (subprog.start, subprog.end);
        if !self.analysis.jump_tables.contains_key(&index) {
            let tables = self.input.jump_tables();
            let tables = tables.filter(|table| {
                let first = table.iter().min();
                first.is_some_and(|first| (start..end).contains(first))
            });
            let mut targets: Vec<u32> = tables.flatten().copied().collect();
            targets.sort_unstable();
            targets.dedup();
            refuse_if!(targets.is_empty(), self.pass.at(start) => Program::NoJumpTable { start });
            self.pass.insn_idx = index;
            if !targets.iter().all(|target| (start..end).contains(target)) {
                return Err(refuse!(self.pass => Program::JumpTableOutside { index, start, end }));
            }
            self.analysis.jump_tables.insert(index, targets.into());
        }
        self.analysis.insns[index as usize].prune_point = true;
        let targets = self.analysis.jump_tables[&index].clone();
        let mut is_new = false;
        for &target in &targets {
            self.analysis.insns[target as usize].jmp_point = true;
            if self.state[target as usize] == Visit::Unseen {
                self.state[target as usize] = Visit::Discovered(None);
                self.stack.push(target);
                is_new = true;
            }
        }
        Ok(is_new)
    }

    /// Marks that depend on what is called, and the effects that the caller inherits.
    fn mark_call(&mut self, index: u32, insn: RawInsn) {
        let input = self.input;
        let subprog = self.analysis.subprog_containing(index);
        let info = &mut self.analysis.insns[index as usize];
        if calls::calls_async_callback(input, insn) {
            info.prune_point = true;
        }
        if calls::calls_sync_callback(input, insn) {
            let iterates = input.rules.has(Behaviour::CallbacksIterate);
            info.calls_callback = true;
            info.force_checkpoint |= iterates;
            info.prune_point |= iterates;
            info.jmp_point |= iterates;
        }
        if calls::advances_iterator(input, insn) {
            info.prune_point = true;
            info.force_checkpoint = true;
        }
        let subprog = &mut self.analysis.subprogs[subprog];
        // Linux learns which helpers a replacement has behind this pass.
        let is_known = input.program.kind() != ProgramType::Ext || !calls::is_helper_call(insn);
        let summary = calls::summary(input, insn).filter(|_| is_known);
        subprog.might_sleep |= summary.is_some_and(|call| call.might_sleep);
        subprog.changes_pkt_data |= calls::changes_packet(input, insn);
        subprog.might_throw |= calls::throws(input, insn);
    }

    /// Linux's `visit_func_call_insn`.
    #[doc(alias = "visit_func_call_insn")]
    fn visit_call(&mut self, index: u32, insn: RawInsn, enters: bool) -> Result<bool> {
        let next = index + slots(insn);
        if self.push(index, i64::from(next), Edge::Fallthrough, self.may_close())? {
            return Ok(true);
        }
        self.mark_join(next);
        if !enters {
            return Ok(false);
        }
        let target = i64::from(index) + i64::from(insn.imm) + 1;
        self.analysis.insns[index as usize].prune_point = true;
        self.inherit_effects(index, target as u32);
        let may_close = self.may_close() || is_function_address(insn);
        self.push(index, target, Edge::Branch, may_close)
    }

    /// Hands the effects of a function on to the one that calls it (`merge_callee_effects`).
    #[doc(alias = "merge_callee_effects")]
    fn inherit_effects(&mut self, caller: u32, callee: u32) {
        let caller = self.analysis.subprog_containing(caller);
        let callee = &self.analysis.subprogs[self.analysis.subprog_containing(callee)];
        let (changes, sleeps) = (callee.changes_pkt_data, callee.might_sleep);
        let throws = callee.might_throw;
        let caller = &mut self.analysis.subprogs[caller];
        caller.changes_pkt_data |= changes;
        caller.might_sleep |= sleeps;
        caller.might_throw |= throws;
    }

    /// Linux's `mark_prune_point`.
    #[doc(alias = "mark_prune_point")]
    fn mark_join(&mut self, index: u32) {
        if let Some(info) = self.analysis.insns.get_mut(index as usize) {
            info.prune_point = true;
            info.jmp_point = true;
        }
    }

    /// True if an edge other than that of a jump may close a loop.
    fn may_close(&self) -> bool {
        self.input.rules.has(Behaviour::FallthroughLoops)
    }

    /// Follows an edge unless it was followed; true if its target is to be explored
    /// first (`push_insn`).
    #[doc(alias = "push_insn")]
    fn push(&mut self, from: u32, to: i64, edge: Edge, may_close: bool) -> Result<bool> {
        if self.state[from as usize] >= Visit::Discovered(Some(edge)) {
            return Ok(false);
        }
        let Some(target) = usize::try_from(to)
            .ok()
            .filter(|target| *target < self.state.len())
        else {
            log::verbose_linfo(self.input, self.pass.at(from), format_args!("{from}: "));
            return Err(refuse!(self.pass.at(from) => Program::JumpOutOfRange { from, to }));
        };
        if edge == Edge::Branch {
            self.mark_join(target as u32);
        }
        match self.state[target] {
            Visit::Unseen => {
                self.state[from as usize] = Visit::Discovered(Some(edge));
                self.state[target] = Visit::Discovered(None);
                self.stack.push(target as u32);
                Ok(true)
            }
            Visit::Explored => {
                self.state[from as usize] = Visit::Discovered(Some(edge));
                Ok(false)
            }
            Visit::Discovered(_) => {
                if self.input.bpf_capable && may_close {
                    return Ok(false);
                }
                log::verbose_linfo(self.input, self.pass.at(from), format_args!("{from}: "));
                let to = self.pass.at(target as u32);
                log::verbose_linfo(self.input, to, format_args!("{target}: "));
                Err(refuse!(self.pass.at(from) => Program::BackEdge { from, target }))
            }
        }
    }

    /// Every instruction was reached, and no jump enters a wide load.
    fn check_reached(&mut self) -> Result<()> {
        let mut index = 0;
        while index < self.state.len() {
            self.pass.insn_idx = index as u32;
            if self.state[index] != Visit::Explored {
                return Err(refuse!(self.pass => Program::Unreachable { index }));
            }
            let wide = slots(self.input.program.insns()[index]) == 2;
            if wide
                && self.input.rules.has(Behaviour::WideLoadsWhole)
                && self
                    .state
                    .get(index + 1)
                    .is_some_and(|state| *state != Visit::Unseen)
            {
                return Err(refuse!(self.pass => Program::JumpIntoWideLoad { index }));
            }
            index += 1 + usize::from(wide);
        }
        Ok(())
    }
}
