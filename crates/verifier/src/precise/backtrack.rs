//! One step back: what must be precise before an instruction, given what must be precise
//! after it (`backtrack_insn`).

use isa::ebpf::{AluOp, AtomicOp, Callee, Insn, Operand, Reg};
use spec::behaviour::{Behaviour, Behaviours};
use spec::helpers::HelperId;

use crate::analysis::Analysis;
use crate::input::Input;
use crate::log::{self, Sink};
use crate::state::{ARGS, HistoryEntry, HistoryFlags, LinkedReg, MAX_CALL_FRAMES};

/// True for exits and for calls that enter a function or a callback.
fn changes_frame(insn: Insn) -> bool {
    match insn {
        Insn::Exit | Insn::Call(Callee::Local(_)) => true,
        Insn::Call(callee) => HelperId::of_call(callee).is_some_and(|it| it.callback().is_some()),
        _ => false,
    }
}

/// A bit of no register: the step back over the instruction is never left out.
const ALWAYS: u16 = 1 << 15;

/// Requested registers and slots by frame (kernel: `struct backtrack_state`) (`backtrack_state`).
#[doc(alias = "backtrack_state")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backtrack {
    pub(super) frame: usize,
    /// Registers that are requested, by frame, one bit each (`bt_set_frame_reg`,
    /// `bt_clear_frame_reg`, `bt_is_frame_reg_set`, `bt_frame_reg_mask`, `bt_reg_mask`).
    #[doc(alias = "bt_set_frame_reg")]
    #[doc(alias = "bt_clear_frame_reg")]
    #[doc(alias = "bt_is_frame_reg_set")]
    #[doc(alias = "bt_frame_reg_mask")]
    #[doc(alias = "bt_reg_mask")]
    pub(super) regs: [u16; MAX_CALL_FRAMES],
    /// Slots that are requested, by frame, one bit each (`bt_set_frame_slot`,
    /// `bt_clear_frame_slot`, `bt_is_frame_slot_set`, `bt_frame_stack_mask`, `bt_stack_mask`).
    #[doc(alias = "bt_set_frame_slot")]
    #[doc(alias = "bt_clear_frame_slot")]
    #[doc(alias = "bt_is_frame_slot_set")]
    #[doc(alias = "bt_frame_stack_mask")]
    #[doc(alias = "bt_stack_mask")]
    pub(super) slots: [u64; MAX_CALL_FRAMES],
}

/// End of a step.
pub(super) enum Step {
    /// The requests are those before the instruction.
    Done,
    /// The instruction cannot be tracked: everything becomes precise.
    Unsupported,
    /// The kernel finds itself at fault here.
    Bug(String),
}

impl Backtrack {
    /// No requests, starting in that frame (`bt_init`, `bt_reset`).
    #[doc(alias = "bt_init")]
    #[doc(alias = "bt_reset")]
    pub(super) fn new(frame: usize) -> Backtrack {
        Backtrack {
            frame,
            regs: [0; MAX_CALL_FRAMES],
            slots: [0; MAX_CALL_FRAMES],
        }
    }

    /// True if nothing is requested (`bt_empty`).
    #[doc(alias = "bt_empty")]
    pub(super) fn is_empty(&self) -> bool {
        (0..=self.frame).all(|number| self.regs[number] == 0 && self.slots[number] == 0)
    }

    /// True if the step back over an instruction with these [`concerned_regs`] changes nothing.
    #[inline]
    pub(super) fn passes(&self, concerned: u16, entry: Option<&HistoryEntry>) -> bool {
        concerned & (self.regs[self.frame] | ALWAYS) == 0
            && entry.is_none_or(HistoryEntry::is_of_jump)
    }

    /// True if the register is requested (`bt_is_reg_set`).
    #[doc(alias = "bt_is_reg_set")]
    fn has(&self, reg: Reg) -> bool {
        self.regs[self.frame] & 1 << reg.number() != 0
    }

    /// Requests a register; the frame pointer never needs it (`bt_set_reg`).
    #[doc(alias = "bt_set_reg")]
    fn set(&mut self, reg: Reg) {
        self.regs[self.frame] |= 1 << reg.number();
    }

    /// Drops the request of a register (`bt_clear_reg`).
    #[doc(alias = "bt_clear_reg")]
    fn clear(&mut self, reg: Reg) {
        self.regs[self.frame] &= !(1 << reg.number());
    }

    /// Goes back over a load: what is requested of the register is requested of the slot.
    fn load(&mut self, dst: Reg, slot: Option<(usize, usize)>) {
        if !self.has(dst) {
            return;
        }
        self.clear(dst);
        if let Some((frame, spi)) = slot {
            self.slots[frame] |= 1 << spi;
        }
    }

    /// Goes back over instruction `idx`; `subseq_idx` was executed after it, -1 if
    /// unknown (`backtrack_insn`).
    #[doc(alias = "backtrack_insn")]
    pub(super) fn step(
        &mut self,
        input: &Input<'_>,
        analysis: &Analysis,
        sink: &mut Sink<'_>,
        idx: u32,
        subseq_idx: i32,
        entry: Option<&HistoryEntry>,
    ) -> Step {
        let insn = input.insns[idx as usize];
        if matches!(insn, Insn::Imm64High) {
            return Step::Done;
        }
        if sink.is_full() {
            let regs = format_regs(self.regs[self.frame]);
            let slots = format_slots(self.slots[self.frame]);
            let frame = self.frame;
            sink.write(format_args!(
                "mark_precise: frame{frame}: regs={regs} stack={slots} before {idx}: "
            ));
            log::verbose_insn(input, sink, idx);
        }
        self.sync_linked(entry);
        let flags = entry.map_or(HistoryFlags::NONE, |entry| entry.flags());
        if !input.rules.has(Behaviour::FramesBacktracked) && changes_frame(insn) {
            return Step::Unsupported;
        }
        match insn {
            Insn::Alu { op, dst, src, .. } => {
                if !self.has(dst) {
                    return Step::Done;
                }
                if op == AluOp::Mov {
                    self.clear(dst);
                }
                if let Operand::Reg(src) = src
                    && src != Reg::R10
                {
                    self.set(src);
                }
            }
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => {
                if !self.has(dst) {
                    return Step::Done;
                }
                self.clear(dst);
                if src != Reg::R10 {
                    self.set(src);
                }
            }
            Insn::Neg { .. } | Insn::Endian { .. } => return Step::Done,
            Insn::Load { dst, .. } | Insn::LoadAcquire { dst, .. } => {
                let slot = self.accessed_slot(input, insn, flags);
                self.load(dst, slot);
            }
            Insn::Store { base, src, .. } => {
                let slot = self.accessed_slot(input, insn, flags);
                return self.store(base, src, slot, entry);
            }
            Insn::Atomic { op, src, .. } if received(op, src, input.rules).is_some() => {
                let slot = self.accessed_slot(input, insn, flags);
                if let Some(dst) = received(op, src, input.rules) {
                    self.load(dst, slot);
                }
            }
            Insn::Atomic { base, src, .. } | Insn::StoreRelease { base, src, .. } => {
                let slot = self.accessed_slot(input, insn, flags);
                return self.store(base, Operand::Reg(src), slot, entry);
            }
            Insn::Call(callee) => {
                let step = self.call(analysis, callee, idx, subseq_idx);
                if let Some(step) = step {
                    return step;
                }
            }
            Insn::Exit => return self.exit(input, analysis, subseq_idx),
            Insn::Jump {
                dst,
                src: Operand::Reg(src),
                ..
            } => {
                if !self.has(dst) && !self.has(src) {
                    return Step::Done;
                }
                if !flags.has(HistoryFlags::SRC_STACK) {
                    self.set(src);
                }
                if !flags.has(HistoryFlags::DST_STACK) {
                    self.set(dst);
                }
            }
            Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::CallReg { .. }
            | Insn::Imm64High
            | Insn::Invalid { .. } => {}
            Insn::LoadImm64 { dst, .. } => {
                if !self.has(dst) {
                    return Step::Done;
                }
                self.clear(dst);
            }
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => {
                // The destination field of these is 0.
                if !self.has(Reg::R0) {
                    return Step::Done;
                }
                return Step::Unsupported;
            }
        }
        self.sync_linked(entry);
        Step::Done
    }

    /// Frame and number of the stack slot that a load or store accesses: of a spill, as the history has it, or
    /// by the instruction alone, which without [`Behaviour::StackByAnyRegister`] counts accesses through the
    /// frame pointer, of any kind, as those of the frame that is asked about.
    fn accessed_slot(
        &self,
        input: &Input<'_>,
        insn: Insn,
        flags: HistoryFlags,
    ) -> Option<(usize, usize)> {
        if input.rules.has(Behaviour::StackByAnyRegister) {
            let is_spill = flags.has(HistoryFlags::STACK_ACCESS);
            return is_spill.then(|| (flags.frame(), flags.spi()));
        }
        match insn {
            Insn::Load { base, off, .. }
            | Insn::Store { base, off, .. }
            | Insn::Atomic { base, off, .. }
                if base == Reg::R10 =>
            {
                let spi = (-i32::from(off) - 1) / 8;
                Some((
                    self.frame,
                    usize::try_from(spi).ok().filter(|&spi| spi < 64)?,
                ))
            }
            _ => None,
        }
    }

    fn store(
        &mut self,
        base: Reg,
        src: Operand,
        slot: Option<(usize, usize)>,
        entry: Option<&HistoryEntry>,
    ) -> Step {
        if self.has(base) {
            // A scalar is no address: pointers were subtracted.
            return Step::Unsupported;
        }
        let Some((frame, spi)) = slot else {
            return Step::Done;
        };
        let slots = &mut self.slots[frame];
        let bit = 1 << spi;
        if *slots & bit == 0 {
            return Step::Done;
        }
        *slots &= !bit;
        if let Operand::Reg(src) = src {
            self.set(src);
        }
        self.sync_linked(entry);
        Step::Done
    }

    /// Goes back over a call; `None` if linked registers are still to be synchronised
    /// (`bt_subprog_exit`).
    #[doc(alias = "bt_subprog_exit")]
    fn call(
        &mut self,
        analysis: &Analysis,
        callee: Callee,
        idx: u32,
        subseq_idx: i32,
    ) -> Option<Step> {
        let regs = self.regs[self.frame];
        let slots = self.slots[self.frame];
        if let Callee::Local(off) = callee {
            let target = (idx as i32 + off + 1) as u32;
            let is_global = analysis
                .subprog_at(target)
                .is_some_and(|index| analysis.subprogs[index].is_global);
            if is_global {
                if regs & ARGS != 0 {
                    return Some(Step::Bug(format!(
                        "global subprog unexpected regs {regs:x}"
                    )));
                }
                self.clear(Reg::R0);
                return Some(Step::Done);
            }
            if regs & !ARGS != 0 {
                return Some(Step::Bug(format!(
                    "static subprog unexpected regs {regs:x}"
                )));
            }
            if slots != 0 {
                return Some(Step::Bug(format!(
                    "static subprog leftover stack slots {slots:x}"
                )));
            }
            if self.frame == 0 {
                return Some(Step::Bug("subprog exit from frame 0".to_owned()));
            }
            self.regs[self.frame] &= !ARGS;
            self.frame -= 1;
            self.regs[self.frame] |= regs & ARGS;
            return Some(Step::Done);
        }
        if analysis.insns[idx as usize].calls_callback && idx as i32 != subseq_idx - 1 {
            if regs & !ARGS != 0 {
                return Some(Step::Bug(format!("callback unexpected regs {regs:x}")));
            }
            if slots != 0 {
                return Some(Step::Bug(format!(
                    "callback leftover stack slots {slots:x}"
                )));
            }
            if self.frame == 0 {
                return Some(Step::Bug("subprog exit from frame 0".to_owned()));
            }
            self.regs[self.frame] &= !ARGS;
            self.frame -= 1;
            return Some(Step::Done);
        }
        if matches!(callee, Callee::Kfunc { id: 0, .. }) {
            return Some(Step::Unsupported);
        }
        self.clear(Reg::R0);
        let regs = self.regs[self.frame];
        if regs & ARGS != 0 {
            return Some(Step::Bug(format!(
                "backtracking call unexpected regs {regs:x}"
            )));
        }
        let is_tail_call = HelperId::of_call(callee) == Some(HelperId::TailCall);
        if is_tail_call && subseq_idx - idx as i32 != 1 {
            if self.frame == MAX_CALL_FRAMES - 1 {
                return Some(Step::Bug(format!(
                    "subprog enter from frame {}",
                    self.frame
                )));
            }
            self.frame += 1;
        }
        None
    }

    /// Goes back over an exit into the function that returned (`bt_subprog_enter`).
    #[doc(alias = "bt_subprog_enter")]
    fn exit(&mut self, input: &Input<'_>, analysis: &Analysis, subseq_idx: i32) -> Step {
        let iterates = input.rules.has(Behaviour::CallbacksIterate);
        let keeps = input.rules.has(Behaviour::LoopArgumentsKept);
        let calls_callback = |at: i32| at >= 0 && analysis.insns[at as usize].calls_callback;
        if iterates && !keeps && calls_callback(subseq_idx) {
            self.regs[self.frame] &= !ARGS;
        }
        let is_local =
            |at: i32| at >= 0 && matches!(input.insns[at as usize], Insn::Call(Callee::Local(_)));
        let from_call = is_local(subseq_idx - 1);
        let regs = self.regs[self.frame];
        if regs & ARGS != 0 && (from_call || !keeps) {
            return Step::Bug(format!("backtracking exit unexpected regs {regs:x}"));
        }
        let r0_precise = from_call && self.has(Reg::R0);
        self.clear(Reg::R0);
        if self.frame == MAX_CALL_FRAMES - 1 {
            return Step::Bug(format!("subprog enter from frame {}", self.frame));
        }
        self.frame += 1;
        if r0_precise {
            self.set(Reg::R0);
        }
        Step::Done
    }

    /// Requests all registers and slots that were linked at the instruction if one of them is
    /// requested (`bt_sync_linked_regs`, `bpf_bt_sync_linked_regs`).
    #[doc(alias = "bt_sync_linked_regs")]
    #[doc(alias = "bpf_bt_sync_linked_regs")]
    fn sync_linked(&mut self, entry: Option<&HistoryEntry>) {
        let Some(entry) = entry.filter(|entry| !entry.linked.is_empty()) else {
            return;
        };
        let is_requested = |linked: LinkedReg| match linked {
            LinkedReg::Reg { frame, reg } => self.regs[frame] & 1 << reg != 0,
            LinkedReg::Slot { frame, spi } => self.slots[frame] & 1 << spi != 0,
        };
        if !entry.linked.iter().any(is_requested) {
            return;
        }
        for linked in entry.linked.iter() {
            match linked {
                LinkedReg::Reg { frame, reg } => self.regs[frame] |= 1 << reg,
                LinkedReg::Slot { frame, spi } => self.slots[frame] |= 1 << spi,
            }
        }
    }
}

/// The register that an atomic instruction loads, to kernels that go back over it as a load.
fn received(op: AtomicOp, src: Reg, rules: Behaviours) -> Option<Reg> {
    op.receiver(src)
        .filter(|_| rules.has(Behaviour::AtomicsLoad))
}

/// Registers of which a request changes [`Backtrack`] at the instruction; [`ALWAYS`] where the
/// step is more than that. Accesses to the stack and linked registers are in the history.
pub(crate) fn concerned_regs(insn: Insn, rules: Behaviours) -> u16 {
    let bit = |reg: Reg| 1 << reg.number();
    match insn {
        Insn::Store { base, .. } | Insn::Atomic { base, .. }
            if base == Reg::R10 && !rules.has(Behaviour::StackByAnyRegister) =>
        {
            ALWAYS
        }
        Insn::Atomic { op, src, .. } if received(op, src, rules).is_some() => {
            received(op, src, rules).map_or(0, bit)
        }
        Insn::Alu { op, dst, src, .. } => match (op, src) {
            (AluOp::Mov, _) => bit(dst),
            (_, Operand::Reg(src)) if src != Reg::R10 => bit(dst),
            (_, Operand::Reg(_) | Operand::Imm(_)) => 0,
        },
        Insn::MovSx { dst, .. }
        | Insn::Cast { dst, .. }
        | Insn::Load { dst, .. }
        | Insn::LoadAcquire { dst, .. }
        | Insn::LoadImm64 { dst, .. } => bit(dst),
        Insn::Store { base, .. } | Insn::Atomic { base, .. } | Insn::StoreRelease { base, .. } => {
            bit(base)
        }
        Insn::Jump {
            dst,
            src: Operand::Reg(src),
            ..
        } => bit(dst) | bit(src),
        Insn::PacketAbs { .. } | Insn::PacketInd { .. } => bit(Reg::R0),
        Insn::Call(_) | Insn::Exit => ALWAYS,
        Insn::Neg { .. }
        | Insn::Endian { .. }
        | Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg { .. }
        | Insn::Imm64High
        | Insn::Invalid { .. } => 0,
    }
}

/// Registers of a mask as the log names them (`fmt_reg_mask`).
#[doc(alias = "fmt_reg_mask")]
pub(super) fn format_regs(mask: u16) -> String {
    let names: Vec<String> = super::bits(u64::from(mask))
        .map(|reg| format!("r{reg}"))
        .collect();
    names.join(",")
}

/// Offsets of slots of a mask as the log names them (`fmt_stack_mask`, `bpf_fmt_stack_mask`).
#[doc(alias = "fmt_stack_mask")]
#[doc(alias = "bpf_fmt_stack_mask")]
pub(super) fn format_slots(mask: u64) -> String {
    let names: Vec<String> = super::bits(mask)
        .map(|spi| format!("{}", -8 * (spi as i64 + 1)))
        .collect();
    names.join(",")
}
