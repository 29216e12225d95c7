//! Calls and returns: of helpers, of functions of the program, by helpers that call such
//! functions, and tail calls.

use std::ops::Range;
use std::sync::Arc;

use isa::ebpf::{Reg, RegSet};
use spec::limits;
use vm::{Iteration, IterationStep};

use super::super::calls::CallFault;
use super::super::frequent::REGISTERS;
use super::super::memory::Memory;
use super::super::tail::TAIL_CALL;
use super::super::trap::Reason;
use super::super::{CheckedProgram, Limits, MAY_GOTO_LOOPS, MOST_FRAMES};
use super::{FP, R0, Run, Stop};

impl<'m> Run<'_, '_, 'm, '_> {
    /// Calls a helper; returns the slot to go on at: that of a function of the program if
    /// the helper calls one, which returns to `return_to` in the end.
    pub(super) fn call(&mut self, number: i32, return_to: usize) -> Result<usize, Stop> {
        let mut arguments = [0; 5];
        arguments.copy_from_slice(&self.regs[1..=5]);
        let answer = self.cx.calls.call(number, arguments, self.cx.memory);
        let answer = answer.ok_or(Reason::UnknownHelper(number))?;
        if let Some(access) = self.cx.memory.take_not_given() {
            return Err(Reason::Call(number, CallFault::Memory(access)).into());
        }
        self.regs[R0] = answer.map_err(|fault| Reason::Call(number, fault))?;
        if let Some(cookie) = self.cx.memory.take_thrown() {
            return self.unwind(number, cookie);
        }
        match self.cx.memory.take_begun() {
            Some(calls) => self.iterate(Calling { number, calls }, None, return_to),
            None => Ok(return_to),
        }
    }

    /// Leaves all functions of the executing program for its exception callback, which runs in
    /// the place of the first one; without a callback the program returns the cookie.
    fn unwind(&mut self, number: i32, cookie: u64) -> Result<usize, Stop> {
        let left = &self.frames.callers[self.base..];
        if left.iter().any(|caller| caller.calling.is_some()) {
            let fault = CallFault::Refused("a helper called the function".into());
            return Err(Reason::Call(number, fault).into());
        }
        while self.frames.depth() > self.base {
            if let Some(caller) = self.frames.callers.pop() {
                self.cx.memory.pop_frame();
                self.regs[CALLEE_SAVED].copy_from_slice(&caller.saved);
                self.may_goto = caller.may_goto;
            }
        }
        let program = self.current.as_deref().unwrap_or(self.first);
        let Some(callback) = program.exception_callback else {
            self.regs[R0] = cookie;
            return self.leave();
        };
        self.cx.memory.pop_frame();
        self.regs = [0; REGISTERS];
        self.regs[1] = cookie;
        self.regs[FP] = self.cx.memory.push_frame(self.limits.stack_fill);
        self.hints = [self.cx.memory.newest(); REGISTERS];
        self.may_goto = MAY_GOTO_LOOPS;
        Ok(callback)
    }

    /// Takes the next step of a helper that calls functions of the program.
    fn iterate(
        &mut self,
        mut calling: Calling<'m>,
        returned: Option<u64>,
        return_to: usize,
    ) -> Result<usize, Stop> {
        let step = calling.calls.next(self.cx.memory, returned);
        self.pointers = self.pointers.without(CLOBBERED);
        match step.map_err(|fault| Reason::Call(calling.number, fault))? {
            IterationStep::Return(result) => {
                self.regs[R0] = result;
                Ok(return_to)
            }
            IterationStep::Call {
                function: address,
                arguments,
            } => {
                let program = self.current.as_deref().unwrap_or(self.first);
                let slot = self.enter(self.function(program, address)?, return_to)?;
                self.regs[1..=5].copy_from_slice(&arguments);
                if let Some(caller) = self.frames.callers.last_mut() {
                    caller.calling = Some(calling);
                }
                Ok(slot)
            }
        }
    }

    /// Goes on with the program at an index of a program array in place of the executing
    /// function; returns if there is none or too many tail calls were made.
    pub(super) fn tail_call(&mut self) -> Result<(), Stop> {
        let [context, array, index] = [self.regs[1], self.regs[2], self.regs[3]];
        let Some(array) = self.cx.memory.map_at(array) else {
            let fault = CallFault::Refused("r2 points to no map".into());
            return Err(Reason::Call(TAIL_CALL, fault).into());
        };
        let targets = self.cx.calls.tail_targets.as_ref();
        let target = targets.and_then(|targets| targets.target(array, index as u32));
        let Some(target) = target.filter(|_| self.tail_calls < limits::TAIL_CALLS) else {
            return Ok(());
        };
        self.cx.memory.check_closed()?;
        self.cx.memory.check_released()?;
        self.tail_calls += 1;
        self.cx.memory.watch_new_frames(target.watches_stack);
        self.current = Some(target);
        self.base = self.frames.depth();
        self.cx.memory.pop_frame();
        self.regs = [0; REGISTERS];
        self.pointers = RegSet::EMPTY;
        self.regs[1] = context;
        self.regs[FP] = self.cx.memory.push_frame(self.limits.stack_fill);
        self.hints = [self.cx.memory.newest(); REGISTERS];
        self.may_goto = MAY_GOTO_LOOPS;
        Err(Stop::Switched(0))
    }

    /// Calls the function at a slot; it returns to `return_to`.
    pub(super) fn enter(&mut self, function: usize, return_to: usize) -> Result<usize, Stop> {
        let mut saved = [0; CALLEE_SAVED.end - CALLEE_SAVED.start];
        saved.copy_from_slice(&self.regs[CALLEE_SAVED]);
        let caller = Caller {
            return_to,
            saved,
            pointers: self.pointers,
            may_goto: std::mem::replace(&mut self.may_goto, MAY_GOTO_LOOPS),
            program: self.current.clone(),
            base: self.base,
            calling: None,
        };
        self.frames.push(caller, self.base)?;
        self.regs[FP] = self.cx.memory.push_frame(self.limits.stack_fill);
        self.hints[FP] = self.cx.memory.newest();
        Ok(function)
    }

    /// Returns from a function, or from the program.
    pub(super) fn leave(&mut self) -> Result<usize, Stop> {
        self.cx.memory.check_closed()?;
        let Some(caller) = self.frames.callers.pop() else {
            self.cx.memory.check_released()?;
            return Err(Stop::Returned(self.regs[R0]));
        };
        self.cx.memory.pop_frame();
        self.regs[CALLEE_SAVED].copy_from_slice(&caller.saved);
        let is_pointer = self.pointers.contains(Reg::R0);
        self.pointers = caller.pointers.without(CLOBBERED);
        self.mark_pointer(Reg::R0, is_pointer);
        self.hints[FP] = self.cx.memory.newest();
        self.may_goto = caller.may_goto;
        self.base = caller.base;
        let is_same = match (&self.current, &caller.program) {
            (None, None) => true,
            (Some(current), Some(program)) => Arc::ptr_eq(current, program),
            _ => false,
        };
        if !is_same {
            self.current = caller.program;
        }
        let next = match caller.calling {
            Some(calling) => self.iterate(calling, Some(self.regs[R0]), caller.return_to)?,
            None => caller.return_to,
        };
        match is_same {
            true => Ok(next),
            false => Err(Stop::Switched(next)),
        }
    }
}

/// The call stack of a run.
pub(super) struct Frames<'m> {
    callers: Vec<Caller<'m>>,
    limit: usize,
}

/// A helper that calls functions of the program.
struct Calling<'m> {
    number: i32,
    calls: Box<dyn Iteration<Memory<'m>>>,
}

/// State of the caller that a call preserves.
struct Caller<'m> {
    return_to: usize,
    saved: [u64; CALLEE_SAVED.end - CALLEE_SAVED.start],
    /// The registers that held pointers into the arena.
    pointers: RegSet,
    may_goto: u64,
    program: Option<Arc<CheckedProgram>>,
    base: usize,
    /// The helper that made the call; without one it was the caller's own.
    calling: Option<Calling<'m>>,
}

/// The registers that calls change: `r0` to `r5`.
pub(super) const CLOBBERED: RegSet = RegSet::ARGUMENTS.union(RegSet::of(Reg::R0));

/// The callee-saved registers: `r6` to `r10`.
const CALLEE_SAVED: Range<usize> = 6..11;

impl<'m> Frames<'m> {
    pub(super) fn new(limits: &Limits) -> Frames<'m> {
        Frames {
            callers: Vec::new(),
            limit: limits.frames.clamp(1, MOST_FRAMES),
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.callers.len()
    }

    /// Adds a frame to a program whose first one has `base` frames below it.
    fn push(&mut self, caller: Caller<'m>, base: usize) -> Result<(), Reason> {
        if self.callers.len() - base + 1 == self.limit {
            return Err(Reason::FrameLimit(self.limit));
        }
        self.callers.push(caller);
        Ok(())
    }
}
