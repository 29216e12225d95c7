//! The frames of a run, as its instructions show them: calls, returns, functions that helpers call,
//! tail calls and exceptions.
//!
//! One comparison for an instruction that follows the one before it.

use interp::checked::Moment;
use isa::ebpf::{Callee, Insn, Reg};

/// The registers at an instruction.
type Registers = [u64; Reg::COUNT];

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Number of the program.
    pub program: u32,
    /// The slot that was executed first.
    pub first: u32,
    /// The registers there.
    pub entry: Registers,
    /// Number of the instruction of the run that was executed first.
    pub entered: u64,
    /// The last call that it made.
    pub call: Option<CallSite>,
    /// True if a helper called the function.
    pub is_callback: bool,
}

/// A call that a frame made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Its slot.
    pub slot: u32,
    /// Number of the instruction of the run.
    pub number: u64,
    /// The registers in front of it.
    pub registers: Registers,
}

/// What an instruction does to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// Calls a function of the program.
    CallsFunction,
    /// Calls a helper or kfunc.
    CallsHelper,
    /// Leaves the function, or may do so.
    Leaves,
}

impl Effect {
    fn of(insn: &Insn) -> Effect {
        match insn {
            Insn::Call(Callee::Local(_)) => Effect::CallsFunction,
            Insn::Call(_) | Insn::CallReg { .. } => Effect::CallsHelper,
            Insn::Exit | Insn::PacketAbs { .. } | Insn::PacketInd { .. } => Effect::Leaves,
            _ => Effect::None,
        }
    }
}

/// The frames of a run.
#[derive(Clone, Debug)]
pub struct CallStack {
    frames: Vec<StackFrame>,
    /// Slot, depth and effect of the last instruction; no effect before the first one.
    at: usize,
    depth: usize,
    effect: Option<Effect>,
    /// True if a helper calls the first function.
    begins_by_helper: bool,
}

impl CallStack {
    /// The frames of a run that has not begun. The function of a timer is called by a helper.
    pub fn new(begins_by_helper: bool) -> CallStack {
        CallStack {
            frames: Vec::new(),
            at: 0,
            depth: 0,
            effect: None,
            begins_by_helper,
        }
    }

    /// The frames, that of the entry function first.
    pub fn frames(&self) -> &[StackFrame] {
        &self.frames
    }

    /// The frame that executes.
    pub fn top(&self) -> Option<&StackFrame> {
        self.frames.last()
    }

    /// Notes the instruction of a number in the run that is executed next.
    #[inline]
    pub fn follow(&mut self, moment: &Moment<'_, '_>, number: u64) {
        let is_next = moment.at == self.at + 1 && moment.depth == self.depth;
        if !is_next || self.effect.is_none() {
            self.leap(moment, number);
        }
        let effect = Effect::of(&moment.program.insns()[moment.at]);
        self.at = moment.at;
        self.effect = Some(effect);
        if matches!(effect, Effect::CallsFunction | Effect::CallsHelper)
            && let Some(frame) = self.frames.last_mut()
        {
            frame.call = Some(CallSite {
                slot: moment.at as u32,
                number,
                registers: *moment.registers,
            });
        }
    }

    /// Follows an instruction that is not behind the last one.
    fn leap(&mut self, moment: &Moment<'_, '_>, number: u64) {
        let (program, depth) = (moment.program.number(), moment.depth);
        let is_new = match self.effect {
            None => true,
            _ if depth > self.depth => true,
            // A helper calls its function again.
            Some(Effect::Leaves) => depth == self.depth,
            // Tail calls and exceptions go on in another function.
            Some(Effect::CallsHelper) => depth < self.depth || moment.at != self.at + 1,
            Some(Effect::CallsFunction | Effect::None) => false,
        };
        let is_callback = match self.effect {
            None => self.begins_by_helper,
            Some(Effect::CallsHelper) => depth > self.depth,
            Some(Effect::Leaves) => self.frames.last().is_some_and(|frame| frame.is_callback),
            Some(Effect::CallsFunction | Effect::None) => false,
        };
        self.depth = depth;
        self.frames.truncate(if is_new { depth } else { depth + 1 });
        if is_new {
            self.frames.push(StackFrame {
                program,
                first: moment.at as u32,
                entry: *moment.registers,
                entered: number,
                call: None,
                is_callback,
            });
        }
    }
}
