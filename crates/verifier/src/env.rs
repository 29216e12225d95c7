//! The current path and the requests that checks make.
//!
//! A check is a function of the form `fn check_x(env: &mut Check<'_>, ...) -> Result<T>`.
//! It reads `input`, `analysis` and `state`, changes `state`, and returns what comes next
//! ([`Outcome`]). One that requests what reaches beyond the path takes an [`Env`], which is a
//! [`Check`] with the walk around it, and requests it by a method: [`Env::mark_precise`],
//! [`Env::fork`], [`Env::push_history`]. Only [`crate::explore`] pushes, prunes and changes
//! checkpoints.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use isa::ebpf::Reg;

use crate::analysis::{Analysis, LiveStack, SubprogInfo};
use crate::call::SubprogArg;
use crate::cost::CostCounter;
use crate::explore::{Explorer, Fork, Liveness};
use crate::input::Input;
use crate::insn_facts::Collector;
use crate::log::{self, Sink};
use crate::precise::PrecisionCounts;
use crate::recorded::Recorder;
use crate::rejection::Rejection;
use crate::speculation::Barriers;
use crate::state::{
    Frame, HistoryEntry, HistoryFlags, LinkedRegs, MAIN_CALLSITE, MapRef, PreciseMask, RegKind,
    RegState, RegType, State,
};
use crate::{Errno, Result, Stop, refuse};

/// Next step of the walk after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Go on with the next slot.
    Next,
    /// Go on behind a wide load: the next slot but one.
    NextWide,
    /// Go on at that slot.
    Jump(u32),
    /// A function is entered at that slot.
    Call(u32),
    /// A function returns to that slot.
    Return(u32),
    /// The path ends.
    Exit,
}

/// Use of a register by an instruction (kernel: `enum reg_arg_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegArg {
    /// It reads it.
    Src,
    /// It writes it; the value is unknown until the check says more.
    Dst,
    /// It writes it; the check sets the value.
    DstNoMark,
}

/// What the walk collects of an instruction (`bpf_insn_aux_data`).
#[doc(alias = "bpf_insn_aux_data")]
#[derive(Clone, Copy, Debug, Default)]
pub struct InsnAux {
    /// The walk was here.
    pub seen: bool,
    /// Type of the pointer that a load or store went through; all paths must agree where
    /// Linux rewrites the access.
    pub ptr_type: Option<RegType>,
    /// The map that a call was given, if all paths agree.
    pub map: MapUse,
    /// Constant key of map calls (kernel: `map_key_state`) (`bpf_map_key_store`).
    #[doc(alias = "bpf_map_key_store")]
    pub map_key: u64,
    /// Size of the context field that a load reads; 0: whole.
    pub ctx_field_size: u32,
    /// The call is `bpf_iter_*_next`.
    pub is_iter_next: bool,
    /// `bpf_loop` was seen here, and always with this callback and zero flags.
    pub loop_inline: LoopInline,
    /// The call finds the copy of an allocated object on a CPU.
    pub is_percpu_allocated: bool,
    /// The call may have to allocate without sleeping.
    pub storage_get_atomic: bool,
    /// Barriers that make the instruction safe under speculative execution.
    pub barriers: Barriers,
}

/// The map that a call is given on all paths (`bpf_map_ptr_store`).
#[doc(alias = "bpf_map_ptr_store")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapUse {
    /// The walk was not here yet.
    #[default]
    None,
    /// One map.
    One(MapRef),
    /// Several maps (`bpf_map_ptr_poisoned`).
    #[doc(alias = "bpf_map_ptr_poisoned")]
    Several,
}

/// State of the inlining of a `bpf_loop` call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopInline {
    /// The walk was here.
    pub initialized: bool,
    /// The callback is always the same and flags are always zero.
    pub fits: bool,
    /// The callback.
    pub subprog: u32,
}

/// What the walk collects of a subprogram (`bpf_subprog_info`, `bpf_func_info_aux`).
#[doc(alias = "bpf_subprog_info")]
#[derive(Clone, Debug, Default)]
pub struct SubprogAux {
    /// Bytes of stack used.
    pub stack_depth: u32,
    /// Instructions walked in it, if the log counts them, and with those of its callees.
    pub insns: [u32; 2],
    /// Below this offset lie spills of fastcall patterns.
    pub fastcall_stack_off: i32,
    /// The fastcall spills must be kept.
    pub keep_fastcall_stack: bool,
    /// Called as a callback.
    pub is_cb: bool,
    /// Called as an asynchronous callback.
    pub is_async_cb: bool,
    /// A tail call is reachable from it.
    pub tail_call_reachable: bool,
    /// A verified function calls it.
    pub called: bool,
    /// Verified on its own.
    pub verified: bool,
    /// Its BTF does not say what its arguments are.
    pub unreliable: bool,
    /// Its arguments, once computed.
    pub args: Option<Rc<[SubprogArg]>>,
}

impl SubprogAux {
    /// A subprogram before the walk.
    pub fn new(info: &SubprogInfo) -> SubprogAux {
        SubprogAux {
            fastcall_stack_off: info.fastcall_stack_off,
            keep_fastcall_stack: info.keep_fastcall_stack,
            ..SubprogAux::default()
        }
    }
}

/// What watches the walk without a part in it, each if it is requested.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// Counts the cost of instructions and call chains.
    pub(crate) cost: Option<Box<CostCounter>>,
    /// Collects facts.
    pub(crate) collector: Option<Box<Collector>>,
    /// Keeps states.
    pub(crate) recorder: Option<Box<Recorder>>,
}

/// What a check takes: program and kernel, the current path, the log and what the walk collects.
pub struct Check<'a> {
    /// Program, kernel, options.
    pub input: &'a Input<'a>,
    /// Results of the passes before the walk.
    pub analysis: &'a Analysis,
    /// The current path.
    pub state: State,
    /// The log.
    pub sink: Sink<'a>,
    /// By instruction, what the walk collects.
    pub aux: Vec<InsnAux>,
    /// By subprogram, what the walk collects.
    pub subprogs: Vec<SubprogAux>,
    /// Last identity given.
    pub id_gen: u32,
    /// Arguments of a struct_ops program that hold references, by index, with the identities.
    pub referenced_args: Vec<(usize, u32)>,
    /// The program writes to packets.
    pub seen_direct_write: bool,
    /// The program throws exceptions (`seen_exception`).
    pub seen_exception: bool,
    /// A pointer moved by a masked offset: states must agree exactly
    /// (`explore_alu_limits`).
    pub explore_alu_limits: bool,
}

/// What a check takes that also makes requests to the explorer (`bpf_verifier_env`): it is a
/// [`Check`] with the walk around it.
#[doc(alias = "bpf_verifier_env")]
pub struct Env<'a> {
    /// What all checks take.
    pub check: Check<'a>,
    /// Work list, checkpoints, counters.
    pub explorer: Explorer,
    /// The paths that this instruction forked off; the explorer pushes them when the check is
    /// over, also behind a refusal that only ends a speculative path.
    pub(crate) forked: Vec<Fork>,
    /// What watches the walk.
    pub(crate) observers: Observers,
    /// Counts of precision tracking.
    pub(crate) precision: PrecisionCounts,
    /// Live stack slots, found as the walk goes.
    pub live: LiveStack,
    /// The instruction executed before; -1 at the start.
    pub prev_insn_idx: i32,
    /// This instruction has an entry in the history, the last one.
    pub(crate) has_history: bool,
}

impl<'a> Deref for Env<'a> {
    type Target = Check<'a>;

    #[inline]
    fn deref(&self) -> &Check<'a> {
        &self.check
    }
}

impl<'a> DerefMut for Env<'a> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Check<'a> {
        &mut self.check
    }
}

impl Check<'_> {
    /// A new identity for registers or references.
    pub fn new_id(&mut self) -> u32 {
        self.id_gen += 1;
        self.id_gen
    }

    /// What the walk collects of this instruction (`cur_aux`).
    #[doc(alias = "cur_aux")]
    pub(crate) fn insn_aux(&mut self) -> &mut InsnAux {
        &mut self.aux[self.sink.insn_idx as usize]
    }

    /// Writes a frame whole.
    pub(crate) fn print_state(&mut self, frame: usize) {
        log::print_verifier_state(self.input, &mut self.sink, &self.state, frame, true);
    }

    /// Writes what this instruction changed in a frame.
    pub(crate) fn print_insn_state(&mut self, frame: usize) {
        log::print_insn_state(self.input, &mut self.sink, &self.state, frame);
    }

    /// Refuses the program at this instruction.
    pub(crate) fn refuse(&mut self, rejection: impl Into<Rejection>) -> Stop {
        self.sink.refuse(rejection)
    }

    /// A register of the executing frame (`reg_state`).
    #[doc(alias = "reg_state")]
    #[inline]
    pub fn reg(&self, reg: Reg) -> &RegState {
        self.state.reg(reg)
    }

    /// A register of the executing frame for writing. The log's marks are the caller's:
    /// see [`Env::mark_scratched`].
    #[inline]
    pub fn reg_mut(&mut self, reg: Reg) -> &mut RegState {
        self.state.reg_mut(reg)
    }

    /// The executing frame.
    #[inline]
    pub fn frame(&self) -> &Frame {
        self.state.cur()
    }

    /// The executing frame for writing.
    #[inline]
    pub fn frame_mut(&mut self) -> &mut Frame {
        self.state.cur_mut()
    }

    /// Notes for the log that a register was written (`mark_reg_scratched`).
    #[doc(alias = "mark_reg_scratched")]
    #[inline]
    pub fn mark_scratched(&mut self, reg: Reg) {
        self.sink.scratched_regs |= 1 << reg.number();
    }

    /// Notes for the log that a slot was written (`mark_stack_slot_scratched`).
    #[doc(alias = "mark_stack_slot_scratched")]
    #[inline]
    pub fn mark_slot_scratched(&mut self, spi: usize) {
        self.sink.scratched_slots |= 1 << (spi & 63);
    }
}

impl<'a> Env<'a> {
    /// Before the walk.
    pub fn new(input: &'a Input<'a>, analysis: &'a Analysis, sink: Sink<'a>) -> Env<'a> {
        let frame = Frame::new(MAIN_CALLSITE, 0, 0);
        let check = Check {
            input,
            analysis,
            state: State::new(frame, 0, input.context.sleepable),
            sink,
            aux: vec![InsnAux::default(); input.insns.len()],
            subprogs: analysis.subprogs.iter().map(SubprogAux::new).collect(),
            id_gen: 0,
            referenced_args: Vec::new(),
            seen_direct_write: false,
            seen_exception: false,
            explore_alu_limits: false,
        };
        Env {
            check,
            explorer: Explorer::new(input.insns.len(), input.rules),
            forked: Vec::new(),
            observers: Observers::default(),
            precision: PrecisionCounts::default(),
            live: LiveStack::default(),
            prev_insn_idx: -1,
            has_history: false,
        }
    }

    /// Demands that the scalar in a register of the executing frame be precise, here and
    /// wherever its value came from (`mark_chain_precision`).
    #[doc(alias = "mark_chain_precision")]
    pub fn mark_precise(&mut self, reg: Reg) -> Result<()> {
        crate::precise::mark_chain_precision(self, reg)
    }

    /// As [`Env::mark_precise`], for registers and slots by frame
    /// (`mark_chain_precision_batch`).
    #[doc(alias = "mark_chain_precision_batch")]
    pub fn mark_batch_precise(&mut self, wanted: &[PreciseMask]) -> Result<()> {
        crate::precise::mark_batch(self, wanted)
    }

    /// Checks that a register may be used so (`check_reg_arg`) (`__check_reg_arg`).
    #[doc(alias = "__check_reg_arg")]
    #[inline]
    pub fn check_reg_arg(&mut self, reg: Reg, usage: RegArg) -> Result<()> {
        self.mark_scratched(reg);
        if self.explorer.liveness == Liveness::Marks {
            self.mark_usage(reg, usage);
        }
        match usage {
            RegArg::Src if matches!(self.reg(reg).kind, RegKind::NotInit) => {
                Err(refuse!(self => Flow::NotReadable { reg }))
            }
            RegArg::Src => Ok(()),
            RegArg::Dst | RegArg::DstNoMark if reg == Reg::R10 => {
                Err(refuse!(self => Flow::FramePointer))
            }
            RegArg::Dst => {
                *self.reg_mut(reg) = RegState::UNKNOWN;
                Ok(())
            }
            RegArg::DstNoMark => Ok(()),
        }
    }

    /// Marks a register as read or written.
    #[inline(never)]
    fn mark_usage(&mut self, reg: Reg, usage: RegArg) {
        match usage {
            _ if reg == Reg::R10 => {}
            RegArg::Src if matches!(self.reg(reg).kind, RegKind::NotInit) => {}
            RegArg::Src => self.mark_reg_read(reg),
            RegArg::Dst | RegArg::DstNoMark => {
                self.frame_mut().marks.written_regs |= 1 << reg.number();
            }
        }
    }

    /// Marks a register of the executing frame as read.
    pub(crate) fn mark_reg_read(&mut self, reg: Reg) {
        if self.explorer.liveness == Liveness::Marks {
            let frame = self.state.curframe;
            self.explorer
                .read_reg(&self.check.state, frame, reg.index());
        }
    }

    /// Marks slots of a frame as read.
    pub(crate) fn mark_slots_read(&mut self, frame: usize, slots: u64) {
        let check = &self.check;
        let insn_idx = check.sink.insn_idx;
        self.live
            .mark_read(check.analysis, &check.state, frame, insn_idx, slots);
        if self.explorer.liveness == Liveness::Marks {
            self.explorer.read_slots(&self.check.state, frame, slots);
        }
    }

    /// Marks slots of a frame as written.
    pub(crate) fn mark_slots_written(&mut self, frame: usize, slots: u64) {
        self.live.mark_write(frame, slots);
        if self.explorer.liveness == Liveness::Marks {
            self.state.frame_mut(frame).marks.written_slots |= slots;
        }
    }

    /// Hands the live slots of the finished path or frame on.
    pub(crate) fn update_live(&mut self) -> Result<()> {
        let check = &mut self.check;
        self.live
            .update(check.analysis, &mut check.sink, &check.state)
    }

    /// The entry of this instruction in the history.
    pub(crate) fn history_entry(&self) -> Option<&HistoryEntry> {
        self.state.history.last().filter(|_| self.has_history)
    }

    /// Adds to the history what this instruction does, or extends its entry (`push_jmp_history`,
    /// `push_insn_history`, `bpf_push_jmp_history`).
    #[doc(alias = "push_jmp_history")]
    #[doc(alias = "push_insn_history")]
    #[doc(alias = "bpf_push_jmp_history")]
    pub fn push_history(&mut self, flags: HistoryFlags, linked: LinkedRegs) -> Result<()> {
        if self.has_history
            && let Some(entry) = self.state.history.last_mut()
        {
            entry.add_flags(flags);
            if linked != LinkedRegs::default() {
                entry.linked = linked;
            }
            return Ok(());
        }
        self.has_history = true;
        let entry = HistoryEntry::new(self.sink.insn_idx, self.prev_insn_idx, flags, linked);
        self.state.history.push(entry);
        Ok(())
    }

    /// Forks the path: a copy of the current state, to be explored from `insn_idx` after the
    /// paths that follow, which the check may change (`push_stack`).
    #[doc(alias = "push_stack")]
    pub fn fork(&mut self, insn_idx: u32) -> Result<&mut State> {
        self.fork_or(insn_idx, Errno::EFAULT)
    }

    /// As [`Env::fork`], for a check that had an error number of its own for too many paths.
    pub fn fork_or(&mut self, insn_idx: u32, errno: Errno) -> Result<&mut State> {
        let state = self.state.clone();
        crate::explore::fork(self, state, insn_idx, errno)
    }

    /// Forks off a path with a state of its own, of an asynchronous callback (`push_async_cb`).
    #[doc(alias = "push_async_cb")]
    pub fn fork_async(&mut self, state: State, insn_idx: u32) -> Result<()> {
        crate::explore::fork(self, state, insn_idx, Errno::EFAULT)?;
        Ok(())
    }
}

/// Checks the invariants of every register of the executing frame.
pub(crate) fn assert_invariants(env: &Env<'_>) -> Result<()> {
    for (number, reg) in env.frame().regs.iter().enumerate() {
        if reg.is_scalar()
            && let Some(violation) = reg.num.violation()
        {
            let message = violation.message();
            return Err(crate::Stop::Bug(format!(
                "r{number} at {}: {message}",
                env.sink.insn_idx
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
