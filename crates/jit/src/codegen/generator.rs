//! Code generation: one forward pass over the program with a peephole window.
//!
//! Following instructions of the basic block are fused where one machine instruction can
//! replace several (`peek`). Within a basic block the generator tracks the number of
//! significant bits of each register and the register that the flags describe.

use std::mem;

use isa::ebpf::{Imm64, Insn, Reg, Width};
use lower::{Evidence, Function, LoweredCall, LoweredCode};

use super::Code;
use super::address::Sum;
use super::arithmetic::Arithmetic;
use super::comparison_tree::Table;
use super::deadline::DeadlineChecks;
use super::frame::{Frame, FrameRequirements};
use super::hash_lookup::OpenLookup;
use super::packet::SlowLoad;
use super::target::{Assembler, Label, Layout, Target};
use crate::analysis::{Analysis, Halves, Rewrite, SlotInfo, Usage};
use crate::{Applied, Optimization, Optimizations, Options};

/// The register and width whose comparison with 0 the flags describe, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(Option<(Reg, Width)>);

impl Flags {
    /// The flags describe no register.
    pub(crate) const NONE: Flags = Flags(None);

    /// The width at which the flags describe a register.
    pub(crate) fn width(self, reg: Reg) -> Option<Width> {
        match self.0 {
            Some((described, width)) if described == reg => Some(width),
            _ => None,
        }
    }

    /// The flags after the register changed.
    fn without(self, reg: Reg) -> Flags {
        match self.width(reg) {
            Some(_) => Flags::NONE,
            None => self,
        }
    }
}

/// State of the code generation of one program.
pub(crate) struct Generator<'a, T: Target> {
    pub(crate) target: T,
    pub(crate) program: &'a LoweredCode,
    pub(crate) insns: &'a [Insn],
    pub(crate) analysis: &'a Analysis,
    /// The result of the analysis for every slot.
    pub(crate) infos: &'a [SlotInfo],
    optimizations: Optimizations,
    applied: Applied,
    /// True if a code map is recorded: every slot gets a label.
    map: bool,
    /// Tail calls may enter the program.
    pub(crate) tail_target: bool,
    /// Indirect branches go through a retpoline.
    pub(crate) retpoline: bool,
    /// Label of the retpoline, if it is used.
    pub(crate) thunk: Option<Label>,
    /// Labels of the slots at the entries of functions, in the order in which the functions
    /// are written; `None` without slots.
    entry_slots: Option<Vec<Label>>,
    pub(crate) asm: T::Assembler,
    pub(crate) frame: Frame<T>,
    pub(crate) usage: Usage,
    pub(crate) function: Function,
    /// Significant bits of each register: higher bits are zero.
    known_bits: [u8; Reg::COUNT],
    /// Significant bits at the start of a basic block: registers of a classic filter have
    /// 32.
    always_known: [u8; Reg::COUNT],
    pub(crate) flags: Flags,
    /// Flags before the current instruction.
    pub(crate) flags_before: Flags,
    /// Label of the function's epilogue, if it is shared.
    pub(crate) epilogue: Option<Label>,
    /// Label of the code that returns 0.
    pub(crate) return_zero: Option<Label>,
    /// Proven packet length in bytes.
    pub(crate) proven_len: u32,
    /// A sum that is folded into its accesses.
    pub(crate) sum: Option<Sum<T::Reg>>,
    /// First slot that [`Generator::write_marked`] must visit in any case: the end of a
    /// folded sum; 0 if every slot is visited.
    due: usize,
    /// Slot of a selection that becomes the result of its condition; its register is zero until then.
    pub(crate) set_condition: Option<usize>,
    pub(crate) slow_loads: Vec<SlowLoad>,
    pub(crate) slow_load_stubs: [Option<Label>; 3],
    pub(crate) open_lookups: Vec<OpenLookup>,
    /// Deadline checks.
    pub(crate) deadline_checks: DeadlineChecks,
    /// The code uses the native context.
    pub(crate) uses_context: bool,
    /// Frames with a stack are recorded for helpers that read any address.
    records_frames: bool,
    /// Addresses of helpers, and labels of their table entries.
    pub(crate) helpers: Vec<(u64, Label)>,
    /// Tables of comparison trees, written after the code.
    pub(crate) tables: Vec<Table>,
}

/// Alignment of entries with a slot, so that the slot lies within eight aligned bytes.
const ENTRY_ALIGNMENT: u8 = 8;

/// Alignment of loop headers, as compilers choose it: the speed of a short loop depends less on
/// the length of the code before it.
const LOOP_ALIGNMENT: u8 = 16;

impl<'a, T: Target> Generator<'a, T> {
    pub(crate) fn new(
        program: &'a LoweredCode,
        analysis: &'a Analysis,
        target: T,
        options: &Options,
        long_tables: bool,
    ) -> Self {
        Generator {
            program,
            insns: program.insns(),
            analysis,
            infos: analysis.infos(),
            target,
            optimizations: options.optimizations,
            applied: analysis.applied,
            map: options.map,
            tail_target: options.tail_target,
            retpoline: options.retpoline,
            thunk: None,
            entry_slots: options.entry_slots.then(Vec::new),
            asm: T::Assembler::new(
                program.insns().len(),
                program.functions().len(),
                long_tables,
            ),
            frame: Frame::new(),
            usage: Usage::default(),
            function: Function { start: 0, end: 0 },
            known_bits: [64; Reg::COUNT],
            always_known: match program.evidence() {
                Evidence::Classic(_) => [32; Reg::COUNT],
                Evidence::CallerAsserted | Evidence::Verified(_) => [64; Reg::COUNT],
            },
            flags: Flags::NONE,
            flags_before: Flags::NONE,
            epilogue: None,
            return_zero: None,
            proven_len: 0,
            sum: None,
            due: 0,
            set_condition: None,
            slow_loads: Vec::new(),
            slow_load_stubs: [None; 3],
            open_lookups: Vec::new(),
            deadline_checks: DeadlineChecks::new(options.deadline, program),
            uses_context: false,
            records_frames: program.may_probe(),
            helpers: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Compiles the whole program.
    pub(crate) fn generate(&mut self) -> Code<'_, T::Assembler> {
        let mut env = false;
        let mut entry = self.function_label(0);
        for index in (0..self.program.functions().len()).rev() {
            let requirements = self.requirements(index, env);
            self.usage = *self.analysis.usage(index);
            self.function = self.program.functions()[index];
            self.frame.lay_out(&self.usage, requirements);
            env |= requirements.env;
            if index == 0 {
                entry = self.write_entry();
            }
            self.write_function();
        }
        T::write_thunks(self);
        self.write_tables();
        self.write_helper_table();
        let len = self.asm.relax_branches();
        Code {
            len,
            entry: self.asm.offset(entry) as usize,
            tail_entry: self.asm.offset(self.function_label(0)) as usize,
            entry_slots: self.entry_slot_offsets(),
            uses_context: self.uses_context,
            applied: self.applied,
            asm: &self.asm,
        }
    }

    fn requirements(&self, index: usize, env: bool) -> FrameRequirements {
        let is_entry = index == 0;
        let usage = self.analysis.usage(index);
        let hidden_calls = usage.packet && self.has_slow_loads(self.program.functions()[index]);
        let in_memory = usage.packet && !is_entry;
        let budget = usage.loops && self.has_budget();
        let function = self.program.functions()[index];
        let fuel = self.fuel(function, usage);
        FrameRequirements {
            is_entry,
            env: env
                || hidden_calls
                || in_memory
                || budget
                || fuel
                || usage.calls_helpers
                || usage.tail_calls
                || usage.reads_processor_id,
            hidden_calls: hidden_calls || fuel,
            saves_all: self.may_end_in_callee(function, usage),
            counts: fuel && usage.loops,
            stack: self.program.stack(function),
            records: self.records_frames,
        }
    }

    /// True if backward jumps are limited by a budget, because termination is not proven.
    pub(crate) fn has_budget(&self) -> bool {
        !self.program.evidence().proves_termination()
    }

    /// True if the code may use an optimization.
    pub(crate) fn uses(&self, optimization: Optimization) -> bool {
        self.optimizations.contains(optimization)
    }

    /// Counts an optimization that was applied.
    pub(crate) fn applies(&mut self, optimization: Optimization) {
        self.applied.add(optimization);
    }

    fn start_block(&mut self) {
        self.known_bits = self.always_known;
        self.flags = Flags::NONE;
        self.proven_len = 0;
    }

    fn write_function(&mut self) {
        self.epilogue = None;
        self.return_zero = None;
        let label = self.function_label(self.function.start);
        match self.function.start {
            // Its slot is at the entry, which is not that of tail calls.
            0 => self.asm.bind(label),
            _ => self.write_entry_slot(label),
        }
        self.write_prologue();
        self.check_on_call();
        self.write_body();
        self.write_slow_loads();
        self.write_open_lookups();
        self.write_deadline_checks();
        self.write_return_zero();
    }

    /// Binds the label of an entry, and writes the slot that begins there, if there are slots.
    pub(crate) fn write_entry_slot(&mut self, entry: Label) {
        let Some(slots) = &mut self.entry_slots else {
            return self.asm.bind(entry);
        };
        slots.push(entry);
        self.asm.align(ENTRY_ALIGNMENT);
        self.asm.bind(entry);
        self.asm.entry_slot();
    }

    /// True if entries begin with slots.
    pub(crate) fn has_entry_slots(&self) -> bool {
        self.entry_slots.is_some()
    }

    /// Offsets of the slots in the order of the functions, of which the last is written first.
    fn entry_slot_offsets(&self) -> Vec<u32> {
        let slots = self.entry_slots.iter().flatten().rev();
        slots.map(|slot| self.asm.offset(*slot)).collect()
    }

    /// Writes the function's instructions.
    fn write_body(&mut self) {
        self.start_block();
        let Function { start, end } = self.function;
        self.write_slots(start, end);
    }

    /// Compiles the slots `start..end`.
    fn write_slots(&mut self, start: usize, end: usize) {
        self.end_block();
        let (infos, insns) = (&self.infos[..end], &self.insns[..end]);
        let mut slot = start;
        while slot < end {
            let info = &infos[slot];
            let is_plain = slot < self.due && info.is_unmarked();
            if !is_plain && let Some(count) = self.write_marked(slot) {
                slot += count;
                continue;
            }
            slot += self.write_insn(slot, &insns[slot], info.live_out);
        }
    }

    /// Drops a folded sum at the end of a basic block.
    fn end_block(&mut self) {
        self.sum = None;
        self.reset_due();
    }

    /// Has [`Generator::run_due`] called at the slot.
    pub(crate) fn schedule(&mut self, slot: usize) {
        self.due = self.due.min(slot);
    }

    /// Clears the scheduled slots, unless every slot is visited.
    fn reset_due(&mut self) {
        self.due = if self.map { 0 } else { usize::MAX };
    }

    /// Drops a folded sum after its last use.
    fn run_due(&mut self, slot: usize) {
        self.reset_due();
        match self.sum {
            Some(sum) if sum.last < slot => self.sum = None,
            Some(sum) => self.schedule(sum.last + 1),
            None => {}
        }
    }

    /// Handles the marks of a slot: label, loop check, dead code, rewrites. Returns the
    /// number of slots that were compiled, or `None` if the slot is to be compiled
    /// unchanged.
    fn write_marked(&mut self, slot: usize) -> Option<usize> {
        if slot >= self.due {
            self.run_due(slot);
        }
        let infos = self.infos;
        let info = &infos[slot];
        if info.is_target() {
            self.start_block();
        }
        if info.is_loop() {
            self.asm.align(LOOP_ALIGNMENT);
        }
        if info.is_target() || self.map {
            self.asm.bind(self.label(slot));
        }
        self.check_on_loop(slot);
        if info.is_dead() {
            self.applies(Optimization::DeadCode);
            return Some(1);
        }
        if info.is_only_entered() {
            return None;
        }
        self.write_replaced(slot)
    }

    /// Compiles a slot that is part of a comparison tree or rewritten; returns the number
    /// of slots, or `None` if the slot is to be compiled unchanged.
    fn write_replaced(&mut self, slot: usize) -> Option<usize> {
        let infos = self.infos;
        let info = &infos[slot];
        if info.is_subsumed() {
            return Some(1);
        }
        if info.is_tree_root() {
            self.applies(Optimization::ComparisonTree);
            return Some(self.write_comparison_tree(slot));
        }
        if info.is_rewritten()
            && let Some(count) = self.write_rewritten(slot)
        {
            return Some(count);
        }
        None
    }

    /// The label of the function that starts at a slot.
    pub(crate) fn function_label(&self, start: usize) -> Label {
        let index = self
            .program
            .functions()
            .partition_point(|function| function.start < start);
        self.asm.function(index)
    }

    /// The label of a slot.
    pub(crate) fn label(&self, slot: usize) -> Label {
        Label::of_slot(slot)
    }

    /// Compiles the instruction at a slot, and following ones that are fused with it;
    /// returns the number of slots.
    fn write_insn(&mut self, slot: usize, insn: &Insn, live_out: Halves) -> usize {
        self.flags_before = mem::replace(&mut self.flags, Flags::NONE);
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let live_width = self.live_width(live_out, op, width, dst, src);
                if live_width != width {
                    self.applies(Optimization::Narrowing);
                }
                let this = Arithmetic {
                    op,
                    width: live_width,
                    dst,
                    src,
                };
                return T::alu(self, slot, this);
            }
            Insn::Load {
                size,
                signed: false,
                dst,
                base,
                off,
            } => {
                let mem = self.address(base, off);
                return T::load(self, slot, size, dst, live_out, mem);
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let mem = self.address(base, off);
                self.store(size, mem, src);
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                ..
            } => return self.branch(slot, cond, width, dst, src),
            Insn::Goto { .. } => return self.goto(slot),
            Insn::Neg { width, dst } => T::negate(self, slot, width, dst),
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => T::sign_extend(self, slot, width, from, dst, src),
            Insn::Endian { order, size, dst } => T::byte_order(self, order, size, dst),
            Insn::Cast { dst, src, .. } => self.truncate(dst, src),
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => {
                self.set_known(dst, value.get());
            }
            Insn::Load {
                size,
                dst,
                base,
                off,
                ..
            } => self.load_signed(slot, size, dst, self.address(base, off)),
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => T::load_acquire(self, size, dst, self.address(base, off)),
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => T::store_release(self, size, self.address(base, off), src),
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => T::atomic(self, slot, op, size, self.address(base, off), src),
            Insn::PacketAbs { size, imm } => return self.packet_at(slot, size, imm),
            Insn::PacketInd { size, src, imm } => return self.packet_index(slot, size, src, imm),
            Insn::GotoLong { .. } => return self.goto(slot),
            Insn::MayGoto { .. } => self.may_goto(slot),
            Insn::Call(callee) => {
                self.call(slot, LoweredCall::of(callee).expect("a lowered call"));
            }
            Insn::Exit => self.exit(),
            Insn::Imm64High => {}
            Insn::LoadImm64 { .. }
            | Insn::CallReg { .. }
            | Insn::GotoReg { .. }
            | Insn::Invalid { .. } => unreachable!("no lowered program holds one"),
        }
        1
    }

    /// Compiles the rewrite of a slot; returns the number of slots, or `None` if it has
    /// none.
    fn write_rewritten(&mut self, slot: usize) -> Option<usize> {
        let rewrite = self.analysis.rewrite(slot)?;
        self.flags_before = mem::replace(&mut self.flags, Flags::NONE);
        match rewrite {
            Rewrite::Rotate {
                width,
                dst,
                src,
                left,
            } => T::rotate(self, width, dst, src, left),
            Rewrite::Skip => self.flags = self.flags_before,
        }
        Some(1)
    }

    /// The instruction at a slot, if its only predecessor is the slot before it and it is
    /// to be compiled unchanged.
    pub(crate) fn peek(&self, slot: usize) -> Option<Insn> {
        self.plain_ahead(slot).map(|_| self.insns[slot])
    }

    /// The info of a slot within the peephole window.
    pub(crate) fn plain_ahead(&self, slot: usize) -> Option<&SlotInfo> {
        let info = self.infos.get(slot)?;
        info.is_plain().then_some(info)
    }

    /// The live-out set of a slot.
    pub(crate) fn live_out(&self, slot: usize) -> Halves {
        self.infos[slot].live_out
    }

    /// True if the register's upper half is live after a slot.
    pub(crate) fn upper_live(&self, slot: usize, reg: Reg) -> bool {
        self.live_out(slot).has_upper(reg)
    }

    pub(crate) fn gpr(&self, reg: Reg) -> T::Reg {
        self.frame.gpr(reg)
    }

    /// Significant bits of a register.
    pub(crate) fn known_bits(&self, reg: Reg) -> u8 {
        self.known_bits[reg.index()]
    }

    pub(crate) fn set_known_bits(&mut self, reg: Reg, bits: u8) {
        let index = reg.index();
        self.known_bits[index] = match self.uses(Optimization::KnownBits) {
            true => bits,
            false => self.always_known[index],
        };
    }

    /// Records that the flags describe the register.
    pub(crate) fn set_flags(&mut self, reg: Reg, width: Width) {
        self.flags = Flags(Some((reg, width)));
    }

    /// Records that the instruction preserved the flags and changed one register.
    pub(crate) fn keep_flags(&mut self, changed: Reg) {
        self.flags = self.flags_before.without(changed);
    }
}
