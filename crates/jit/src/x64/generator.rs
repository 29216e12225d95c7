//! Code generation: one forward pass over the program with a peephole window.
//!
//! Each instruction looks ahead at those that follow it where one machine instruction can
//! replace several (`peek`: no jump leads into the middle). In straight-line code the
//! generator tracks how many low bits of each register may be set, and which register the
//! flags describe.

use std::mem;

use isa::ebpf::{Callee, Imm64, Insn, Operand, Reg, Width};
use lower::{Evidence, Function, Input, Lowered};
use spec::SplitMix;
use spec::calls::GET_SMP_PROCESSOR_ID;

use super::Relaxed;
use super::address::{Deferred, Sum};
use super::buffer::{Buffer, Label};
use super::deadline::DeadlineChecks;
use super::features::Features;
use super::frame::{Demand, Frame};
use super::look_up::Table;
use super::merge::Merged;
use super::packet::Beyond;
use super::reg::Gpr;
use crate::analysis::{Analysis, Fact, Halves, Rewrite, Usage};
use crate::backend::Request;
use crate::{Applied, Optimization, Optimizations};

/// The register whose comparison with 0 the flags describe, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// They say nothing.
    pub(super) const NONE: Flags = Flags(0);
    /// Set where they say something; below it is the register's number.
    const SOME: u8 = 0x80;
    const WIDE: u8 = 0x40;

    #[inline(always)]
    const fn of(reg: Reg, width: Width) -> Flags {
        let wide = if matches!(width, Width::W64) {
            Flags::WIDE
        } else {
            0
        };
        Flags(Flags::SOME | wide | reg.index() as u8 & 15)
    }

    /// The width at which they speak of a register.
    #[inline(always)]
    pub(super) fn width(self, reg: Reg) -> Option<Width> {
        match Flags(self.0 & !Flags::WIDE) == Flags::of(reg, Width::W32) {
            true if self.0 & Flags::WIDE != 0 => Some(Width::W64),
            true => Some(Width::W32),
            false => None,
        }
    }

    /// What they say after the register changed.
    #[inline(always)]
    fn without(self, reg: Reg) -> Flags {
        let same = (self.0 ^ reg.index() as u8) & 15 == 0;
        if same { Flags::NONE } else { self }
    }
}

/// See the module's text.
pub(super) struct Generator<'a> {
    pub(super) program: &'a Lowered,
    pub(super) insns: &'a [Insn],
    pub(super) analysis: &'a Analysis,
    /// What is known of every slot.
    pub(super) facts: &'a [Fact],
    /// The same, where instructions may look at those that follow them.
    ahead: &'a [Fact],
    pub(super) features: Features,
    optimizations: Optimizations,
    applied: Applied,
    /// Whether to note where the code of every slot begins.
    map: bool,
    /// Where the numbers come from that hide constants.
    pub(super) keys: Option<SplitMix>,
    pub(super) buf: Buffer,
    pub(super) frame: Frame,
    pub(super) usage: Usage,
    pub(super) function: Function,
    /// For each register, how many of its low bits may be set; with more places
    /// than registers.
    known: [u8; 16],
    /// The same where nothing is known of what came before: registers of a classic
    /// filter hold 32 bits, and pointers are not computed with.
    always_known: [u8; 16],
    pub(super) flags: Flags,
    /// What the flags said before the instruction at hand.
    pub(super) flags_before: Flags,
    /// Where the function's end stands, if it is long enough to be shared.
    pub(super) epilogue: Option<Label>,
    /// Where the program ends with 0.
    pub(super) return_zero: Option<Label>,
    /// The label of slot 0: a second version of the code has labels of its own.
    pub(super) version: Label,
    /// Proven packet length in bytes.
    pub(super) proven_len: u32,
    /// Packet length that is proven from the start of this version.
    pub(super) proven_len_always: u32,
    /// The slot from which on branches may be merged.
    pub(super) merges_from: usize,
    /// Whether the program is a filter of packets.
    pub(super) filters_packets: bool,
    /// The branches that are being merged.
    pub(super) merged: Option<Merged>,
    /// A sum that is not made.
    pub(super) sum: Option<Sum>,
    /// A load that is not done yet.
    pub(super) deferred: Deferred,
    /// The first slot that is not written as it stands, whatever is known of it: where
    /// the sum is forgotten or the load is due, or where every slot is looked at.
    due: usize,
    /// The move of a selection between 0 and 1, whose register is zero until then.
    pub(super) set_condition: Option<usize>,
    /// How many jumps lead to each slot, once somebody has asked.
    pub(super) arrivals: Vec<u8>,
    /// For each slot, whether it compares what stands in `r0` as it stands in the
    /// packet; empty if none does.
    pub(super) in_packet_order: Vec<bool>,
    pub(super) beyond: Vec<Beyond>,
    pub(super) beyond_stubs: [Option<Label>; 3],
    /// DeadlineChecks at the deadline.
    pub(super) deadline_checks: DeadlineChecks,
    /// Addresses of helpers, and where they lie.
    pub(super) helpers: Vec<(u64, Label)>,
    /// Tables of look-ups, written behind the code.
    pub(super) tables: Vec<Table>,
}

/// How many low bits of the value may be set.
pub(super) const fn bits(value: u64) -> u8 {
    (64 - value.leading_zeros()) as u8
}

impl<'a> Generator<'a> {
    #[inline(always)]
    pub(super) fn new(
        program: &'a Lowered,
        analysis: &'a Analysis,
        features: Features,
        request: &Request,
    ) -> Self {
        Generator {
            program,
            insns: program.insns(),
            analysis,
            facts: analysis.facts(),
            ahead: match request.keys {
                Some(_) => &[],
                None => analysis.facts(),
            },
            features,
            optimizations: request.optimizations,
            applied: analysis.applied,
            map: request.map,
            keys: request.keys.clone(),
            buf: Buffer::new(),
            frame: Frame::NONE,
            usage: Usage::default(),
            function: Function { start: 0, end: 0 },
            known: [64; 16],
            always_known: match program.evidence() {
                Evidence::Classic(_) => [32; 16],
                Evidence::CallerAsserted => [64; 16],
            },
            flags: Flags::NONE,
            flags_before: Flags::NONE,
            epilogue: None,
            return_zero: None,
            version: Label::FIRST,
            proven_len: 0,
            proven_len_always: 0,
            merges_from: usize::MAX,
            filters_packets: program.evidence().input() == Input::Packet,
            merged: None,
            sum: None,
            deferred: Deferred::NONE,
            due: 0,
            set_condition: None,
            arrivals: Vec::new(),
            in_packet_order: Vec::new(),
            beyond: Vec::new(),
            beyond_stubs: [None; 3],
            deadline_checks: DeadlineChecks::new(request.deadline, program),
            helpers: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Writes the whole program.
    pub(super) fn generate(&mut self) -> Relaxed<'_> {
        // Not before it is in its place: what was just changed is slow to move.
        let (slots, functions) = (self.insns.len(), self.program.functions().len());
        self.buf.reserve(slots, functions);
        let mut env = false;
        for index in (0..self.program.functions().len()).rev() {
            let demand = self.demand(index, env);
            self.usage = *self.analysis.usage(index);
            self.function = self.program.functions()[index];
            self.frame.lay_out(&self.usage, demand);
            env |= demand.env || self.frame.env.is_some() && index == 0;
            self.write_function();
        }
        self.write_tables();
        self.write_helper_table();
        let len = self.buf.relax_branches();
        Relaxed {
            len,
            entry: self.buf.offset(self.function_label(0)) as usize,
            uses_context: env,
            applied: self.applied,
            buf: &self.buf,
        }
    }

    fn demand(&self, index: usize, env: bool) -> Demand {
        let is_entry = index == 0;
        let usage = self.analysis.usage(index);
        let hidden_calls = usage.packet && self.loads_beyond(self.program.functions()[index]);
        let in_memory = usage.packet && !is_entry;
        let budget = usage.loops && self.has_budget();
        let function = self.program.functions()[index];
        let fuel = self.fuel(function, usage);
        Demand {
            is_entry,
            env: env
                || hidden_calls
                || in_memory
                || budget
                || fuel
                || usage.calls_helpers
                || usage.asks_processor,
            hidden_calls: hidden_calls || fuel,
            saves_all: self.may_be_left(function, usage),
            counts: fuel && usage.loops,
        }
    }

    /// True if backward jumps are limited by a budget, because termination is not proven.
    pub(super) fn has_budget(&self) -> bool {
        !self.program.evidence().proves_termination()
    }

    /// True if the code may use an optimization.
    pub(super) fn uses(&self, optimization: Optimization) -> bool {
        self.optimizations.contains(optimization)
    }

    /// Counts an optimization that was applied.
    pub(super) fn applies(&mut self, optimization: Optimization) {
        self.applied.add(optimization);
    }

    fn forget_all(&mut self) {
        self.known = self.always_known;
        self.flags = Flags::NONE;
        self.proven_len = self.proven_len_always;
    }

    fn write_function(&mut self) {
        self.epilogue = None;
        self.return_zero = None;
        let label = self.function_label(self.function.start);
        self.buf.bind(label);
        self.write_prologue();
        self.check_on_call();
        self.write_versions();
        self.write_beyond();
        self.write_deadline_checks();
        self.write_return_zero();
    }

    /// Writes the function's instructions once.
    pub(super) fn write_body(&mut self) {
        self.forget_all();
        let Function { start, end } = self.function;
        self.write_slots(start, end);
    }

    /// Writes slots up to another.
    #[inline(always)]
    fn write_slots(&mut self, start: usize, end: usize) {
        self.forget_due();
        let (facts, insns) = (&self.facts[..end], &self.insns[..end]);
        let mut slot = start;
        while slot < end {
            let fact = &facts[slot];
            let is_plain = slot < self.due && fact.is_unmarked();
            if !is_plain && let Some(count) = self.write_marked(slot) {
                slot += count;
                continue;
            }
            slot += self.write_insn(slot, &insns[slot], fact.after);
        }
    }

    /// Forgets a sum. Straight-line code ends here, so no load is still to be done.
    fn forget_due(&mut self) {
        self.sum = None;
        self.expect_nothing();
    }

    /// Has [`Generator::take_due`] called at a slot.
    pub(super) fn note_due(&mut self, slot: usize) {
        self.due = self.due.min(slot);
    }

    /// Has it called at none, unless every slot is looked at.
    fn expect_nothing(&mut self) {
        let all = self.map || self.blinds();
        self.due = if all { 0 } else { usize::MAX };
    }

    /// Forgets a sum behind its last use; does the operation at a slot if a load was
    /// deferred to it, and says so.
    #[inline(never)]
    fn take_due(&mut self, slot: usize) -> bool {
        self.expect_nothing();
        match self.sum {
            Some(sum) if sum.last < slot => self.sum = None,
            Some(sum) => self.note_due(sum.last + 1),
            None => {}
        }
        let deferred = self.deferred;
        if deferred.slot != slot {
            self.note_due(deferred.slot);
            return false;
        }
        if self.map {
            self.buf.bind(self.label(slot));
        }
        self.flags = Flags::NONE;
        self.take_deferred();
        true
    }

    /// Does what is to be done before a slot that something leads to, and writes the
    /// slot if it is done otherwise than it stands, or not at all; how many slots that
    /// was. `None` where it is now to be written as it stands.
    #[inline(never)]
    fn write_marked(&mut self, slot: usize) -> Option<usize> {
        if slot >= self.due && self.take_due(slot) {
            return Some(1);
        }
        let facts = self.facts;
        let fact = &facts[slot];
        if fact.is_target() {
            self.forget_all();
        }
        if fact.is_target() || self.map {
            self.buf.bind(self.label(slot));
        }
        self.check_on_loop(slot);
        if fact.is_dead() {
            self.applies(Optimization::DeadCode);
            return Some(1);
        }
        if fact.is_only_entered() && !self.blinds() {
            return None;
        }
        self.write_otherwise(slot)
    }

    /// Writes a slot if it is done otherwise than it stands, or by a look-up; how many
    /// slots that was.
    #[inline(never)]
    fn write_otherwise(&mut self, slot: usize) -> Option<usize> {
        let facts = self.facts;
        let fact = &facts[slot];
        if fact.is_absorbed() && !self.blinds() {
            return Some(1);
        }
        if fact.is_look_up() && !self.blinds() {
            self.applies(Optimization::ComparisonTree);
            return Some(self.look_up(slot));
        }
        if fact.is_rewritten()
            && let Some(count) = self.write_rewritten(slot)
        {
            return Some(count);
        }
        if self.blinds() {
            self.flags_before = mem::replace(&mut self.flags, Flags::NONE);
            if let Some(count) = self.write_blinded(slot) {
                return Some(count);
            }
            self.flags = self.flags_before;
        }
        None
    }

    /// Where calls of the function that starts at a slot lead.
    pub(super) fn function_label(&self, start: usize) -> Label {
        let index = self
            .program
            .functions()
            .partition_point(|function| function.start < start);
        self.buf.function(index)
    }

    /// The label of a slot in the version at hand.
    pub(super) fn label(&self, slot: usize) -> Label {
        self.version.plus(slot)
    }

    /// Writes the instruction at a slot, and perhaps those that follow it; how
    /// many slots that was. What is rare is left to another function, so that the walk
    /// keeps what it works with in registers.
    #[inline(always)]
    fn write_insn(&mut self, slot: usize, insn: &Insn, after: Halves) -> usize {
        self.flags_before = mem::replace(&mut self.flags, Flags::NONE);
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                ref src,
            } => {
                let narrow = self.live_width(after, op, width, dst, *src);
                if narrow != width {
                    self.applies(Optimization::Narrowing);
                }
                let width = narrow;
                self.alu(slot, op, width, dst, src)
            }
            Insn::Load {
                size,
                signed: false,
                dst,
                base,
                off,
            } => {
                let mem = self.address(base, off);
                self.load(slot, size, dst, after, mem)
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let mem = self.address(base, off);
                self.store(size, mem, src);
                1
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                ..
            } => self.branch(slot, cond, width, dst, src),
            Insn::Goto { .. } => self.goto(slot),
            _ => self.write_rare(slot),
        }
    }

    #[inline(never)]
    fn write_rare(&mut self, slot: usize) -> usize {
        match self.insns[slot] {
            Insn::Neg { width, dst } => self.negate(slot, width, dst),
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => self.sign_extend(slot, width, from, dst, src),
            Insn::Endian { order, size, dst } => self.byte_order(order, size, dst),
            Insn::Cast { dst, src, .. } => self.truncate(dst, src),
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => self.set_imm64(dst, value.get()),
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
            } => self.load_acquire(size, dst, base, off),
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => self.store(size, self.address(base, off), Operand::Reg(src)),
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => self.atomic(slot, op, size, self.address(base, off), src),
            Insn::PacketAbs { size, imm } => return self.packet_at(slot, size, imm),
            Insn::PacketInd { size, src, imm } => return self.packet_index(slot, size, src, imm),
            Insn::GotoLong { .. } => return self.goto(slot),
            Insn::MayGoto { .. } => self.may_goto(slot),
            Insn::Call(Callee::Local(off)) => {
                self.call_function((slot as i64 + 1 + i64::from(off)) as usize);
            }
            Insn::Call(Callee::Helper(GET_SMP_PROCESSOR_ID)) => self.processor(),
            Insn::Call(Callee::Helper(number)) => self.call_helper(number),
            Insn::Exit => self.exit(),
            Insn::Imm64High => {}
            Insn::Alu { .. } | Insn::Store { .. } | Insn::Jump { .. } | Insn::Goto { .. } => {
                unreachable!("they are not rare")
            }
            Insn::LoadImm64 { .. }
            | Insn::Call(Callee::Kfunc { .. })
            | Insn::CallReg { .. }
            | Insn::GotoReg { .. }
            | Insn::Invalid { .. } => unreachable!("no lowered program holds one"),
        }
        1
    }

    /// Does a slot otherwise than it is written. How many slots that was; `None`
    /// where it is now to be written as it stands.
    #[inline(never)]
    fn write_rewritten(&mut self, slot: usize) -> Option<usize> {
        let rewrite = self.analysis.rewrite(slot)?;
        self.flags_before = mem::replace(&mut self.flags, Flags::NONE);
        match rewrite {
            Rewrite::Rotate {
                width,
                dst,
                src,
                left,
            } => self.rotate(width, dst, src, left),
            Rewrite::Copy { dst, src } => return Some(self.copy(slot, Width::W32, dst, src)),
            Rewrite::Skip => self.flags = self.flags_before,
        }
        Some(1)
    }

    /// The instruction at a slot, if only the one before it leads there and it
    /// is to be written as it stands.
    #[inline(always)]
    pub(super) fn peek(&self, slot: usize) -> Option<Insn> {
        self.plain_ahead(slot).map(|_| self.insns[slot])
    }

    /// What is known of a slot that [`Generator::peek`] shows.
    #[inline(always)]
    pub(super) fn plain_ahead(&self, slot: usize) -> Option<&Fact> {
        let fact = self.ahead.get(slot)?;
        (fact.is_plain() && self.deferred.slot != slot).then_some(fact)
    }

    /// What is wanted after a slot.
    pub(super) fn after(&self, slot: usize) -> Halves {
        self.facts[slot].after
    }

    /// Whether the register's upper half is wanted after a slot.
    pub(super) fn upper_wanted(&self, slot: usize, reg: Reg) -> bool {
        self.after(slot).has_upper(reg)
    }

    #[inline(always)]
    pub(super) fn gpr(&self, reg: Reg) -> Gpr {
        self.frame.gpr(reg)
    }

    /// How many low bits of a register may be set.
    #[inline(always)]
    pub(super) fn known(&self, reg: Reg) -> u8 {
        self.known[reg.index() & 15]
    }

    #[inline(always)]
    pub(super) fn know(&mut self, reg: Reg, bits: u8) {
        let index = reg.index() & 15;
        self.known[index] = match self.uses(Optimization::KnownBits) {
            true => bits,
            false => self.always_known[index],
        };
    }

    /// The flags now say how the register compares with 0.
    #[inline(always)]
    pub(super) fn set_flags(&mut self, reg: Reg, width: Width) {
        self.flags = Flags::of(reg, width);
    }

    /// What was written left the flags alone, and changed one register.
    #[inline(always)]
    pub(super) fn keep_flags(&mut self, changed: Reg) {
        self.flags = self.flags_before.without(changed);
    }
}
