//! Calls, prologues and epilogues.

use std::mem::offset_of;

use isa::ebpf::{Reg, Size, Width};
use lower::{Evidence, LoweredCall};
use spec::bits::BitOp;
use vm::{FrameRecord, MAY_GOTO_LOOPS};

use super::asm::Alu;
use super::buffer::Label;
use super::frame::{ENTRY_CONTEXT, SCRATCH};
use super::generator::{Flags, Generator};
use super::reg::{Cc, Gpr, Mem};
use crate::native::NativeContext;

/// Length from which on an epilogue is shared by jumps instead of repeated.
const SHARED_EPILOGUE: usize = 4;

/// Registers that hold nothing in functions that make calls, but the arguments of one.
const RUN_CONTEXT: Gpr = Gpr::R9;
const SPARE: Gpr = Gpr::R10;

impl Generator<'_> {
    /// Writes the prologue: saves callee-saved registers and allocates the stack.
    pub(super) fn write_prologue(&mut self) {
        let has_frame_pointer = self.frame.has_frame_pointer();
        if has_frame_pointer {
            self.buf.push(Gpr::RBP);
            self.buf.mov(Width::W64, Gpr::RBP, Gpr::RSP);
            self.reserve(Alu::Sub);
        }
        for index in 0..self.frame.saved.len() {
            let gpr = self.frame.saved[index];
            self.buf.push(gpr);
        }
        if !has_frame_pointer {
            self.reserve(Alu::Sub);
        }
        match self.program.evidence() {
            Evidence::Verified(_) => self.clear_stack(),
            // They read no stack that they did not write.
            Evidence::Classic(_) | Evidence::CallerAsserted => {}
        }
        if let Some(offset) = self.frame.may_goto {
            let top = self.frame.stack_top();
            let counter = Mem::at(top.base, top.disp + offset);
            self.buf.store_imm(Size::DW, counter, MAY_GOTO_LOOPS as i32);
        }
        if let Some(env) = self.frame.env
            && self.function.start == 0
            && env != ENTRY_CONTEXT
        {
            self.buf.mov(Width::W64, env, ENTRY_CONTEXT);
        }
        self.link_frame();
        self.save_stack_pointer();
    }

    /// Sets the stack to zero: the verifier lets privileged programs read stack that they
    /// did not write.
    fn clear_stack(&mut self) {
        let top = self.frame.stack_top();
        let mut left = self.frame.stack_bytes;
        while left > 0 {
            let size = match left {
                8.. => Size::DW,
                4.. => Size::W,
                2.. => Size::H,
                _ => Size::B,
            };
            let place = Mem::at(top.base, top.disp - left);
            self.buf.store_imm(size, place, 0);
            left -= size.bytes() as i32;
        }
    }

    /// The memory operand of a field of the frame's record.
    fn record_field(&self, field: usize) -> Option<Mem> {
        let top = self.frame.stack_top();
        let record = self.frame.record?;
        Some(Mem::at(top.base, top.disp + record + field as i32))
    }

    /// Loads the address of the run context into a register that holds nothing at calls and at
    /// the ends of functions; returns the memory operand of the head of its list of frames.
    fn load_frames(&mut self) -> Mem {
        let run_context = self.context_word(NativeContext::RUN_CONTEXT);
        self.buf.load(Size::DW, None, RUN_CONTEXT, run_context);
        Mem::at(RUN_CONTEXT, NativeContext::FRAMES as i32)
    }

    /// Links the record of the frame into the list of the run context, if it has one.
    fn link_frame(&mut self) {
        let fields = [
            offset_of!(FrameRecord, next),
            offset_of!(FrameRecord, bytes),
            offset_of!(FrameRecord, address_slots),
        ];
        let [Some(next), Some(bytes), Some(slots)] = fields.map(|field| self.record_field(field))
        else {
            return;
        };
        let stack = self.program.stack(self.function);
        let address_slots = stack.map_or(u64::MAX, |stack| stack.address_slots);
        self.buf.store_imm(Size::DW, bytes, self.frame.stack_bytes);
        self.buf.set_keeping_flags(SPARE, address_slots);
        self.buf.store(Size::DW, slots, SPARE);
        let frames = self.load_frames();
        self.buf.load(Size::DW, None, SPARE, frames);
        self.buf.store(Size::DW, next, SPARE);
        self.buf.lea(Width::W64, SPARE, next);
        self.buf.store(Size::DW, frames, SPARE);
    }

    /// Unlinks the record of the frame, before the frame is freed.
    fn unlink_frame(&mut self) {
        if let Some(next) = self.record_field(offset_of!(FrameRecord, next)) {
            let frames = self.load_frames();
            self.buf.load(Size::DW, None, SPARE, next);
            self.buf.store(Size::DW, frames, SPARE);
        }
    }

    fn reserve(&mut self, op: Alu) {
        match (self.frame.reserved, op) {
            (0, _) => {}
            // An 8-bit immediate holds -128, not 128.
            (128, Alu::Sub) => self.buf.alu_imm(Alu::Add, Width::W64, Gpr::RSP, -128),
            (128, _) => self.buf.alu_imm(Alu::Sub, Width::W64, Gpr::RSP, -128),
            (bytes, op) => self.buf.alu_imm(op, Width::W64, Gpr::RSP, bytes),
        }
    }

    /// Returns from the function with the value of `rax`.
    pub(super) fn exit(&mut self) {
        if let Some(label) = self.epilogue {
            return self.buf.jump(label);
        }
        if self.epilogue_len() > SHARED_EPILOGUE {
            let label = self.buf.new_label();
            self.buf.bind(label);
            self.epilogue = Some(label);
        }
        self.write_epilogue();
    }

    /// Estimated length of the epilogue in bytes.
    fn epilogue_len(&self) -> usize {
        let saved = self.frame.saved.iter();
        let pops: usize = saved.map(|gpr| if gpr.number() < 8 { 1 } else { 2 }).sum();
        let freed = if self.frame.has_frame_pointer() {
            1
        } else if self.frame.reserved > 0 {
            4
        } else {
            0
        };
        let unlinked = if self.frame.record.is_some() { 16 } else { 0 };
        pops + unlinked + freed + 1
    }

    fn write_epilogue(&mut self) {
        self.return_fuel();
        self.free_frame();
        self.buf.ret();
    }

    /// Restores the registers and the stack pointer of the caller.
    pub(super) fn free_frame(&mut self) {
        self.unlink_frame();
        if !self.frame.has_frame_pointer() {
            self.reserve(Alu::Add);
        }
        for index in (0..self.frame.saved.len()).rev() {
            let gpr = self.frame.saved[index];
            self.buf.pop(gpr);
        }
        if self.frame.has_frame_pointer() {
            self.buf.leave();
        }
    }

    /// Label of the code that returns 0; [`Generator::write_return_zero`] writes it.
    pub(super) fn zero_label(&mut self) -> Label {
        *self.return_zero.get_or_insert_with(|| self.buf.new_label())
    }

    pub(super) fn write_return_zero(&mut self) {
        if let Some(label) = self.return_zero {
            self.buf.bind(label);
            self.buf.set(Gpr::RAX, 0);
            self.exit();
        }
    }

    /// The memory operand of a field of the native context.
    pub(super) fn context_word(&self, offset: usize) -> Mem {
        let env = self
            .frame
            .env
            .expect("the frame has a native context if the function uses it");
        Mem::at(env, offset as i32)
    }

    /// Compiles the call at a slot.
    pub(super) fn call(&mut self, slot: usize, call: LoweredCall) {
        match call {
            LoweredCall::Local(distance) => {
                self.call_function((slot as i64 + 1 + i64::from(distance)) as usize);
            }
            LoweredCall::ProcessorId => self.processor(),
            LoweredCall::TailCall => self.tail_call(),
            LoweredCall::TailSlot(index) => self.tail_call_of_slot(self.program.tail_slot(index)),
            LoweredCall::HashLookup(index) => self.hash_lookup(index),
            LoweredCall::Bits(BitOp::Bitrev) => self.call_helper(call),
            LoweredCall::Bits(op) => self.bit_operation(op),
            LoweredCall::Helper(_)
            | LoweredCall::Kfunc(_)
            | LoweredCall::Host(_)
            | LoweredCall::MapFunction(_)
            | LoweredCall::BeginCallbacks
            | LoweredCall::NextCallback
            | LoweredCall::PacketLoad => self.call_helper(call),
        }
    }

    fn call_function(&mut self, start: usize) {
        let label = self.function_label(start);
        self.buf.call(label);
        self.after_call();
    }

    /// Compiles the call of a function of the process.
    pub(super) fn call_helper(&mut self, call: LoweredCall) {
        let function = self.program.function(call);
        let function = function.expect("helpers of a lowered program exist");
        let run_context = self.context_word(NativeContext::RUN_CONTEXT);
        self.buf.load(Size::DW, None, RUN_CONTEXT, run_context);
        self.call_host(function as *const () as u64);
        self.after_call();
    }

    /// Compiles `bpf_get_smp_processor_id` to a load from the native context.
    fn processor(&mut self) {
        let number = self.context_word(NativeContext::PROCESSOR);
        self.buf.load(Size::W, None, Gpr::RAX, number);
        self.set_known_bits(Reg::R0, 32);
    }

    /// Calls a host function through its address in a table after the code.
    pub(super) fn call_host(&mut self, address: u64) {
        let known_bits = self.helpers.iter().find(|helper| helper.0 == address);
        let label = match known_bits {
            Some(&(_, label)) => label,
            None => {
                let label = self.buf.new_label();
                self.helpers.push((address, label));
                label
            }
        };
        self.call_through(label);
    }

    /// Writes a call that preserves these registers, where `rsp` is 8 below a multiple of
    /// 16.
    pub(super) fn preserve(&mut self, kept: &[Gpr], call: impl FnOnce(&mut Self)) {
        for &gpr in kept {
            self.buf.push(gpr);
        }
        let pad = kept.len().is_multiple_of(2);
        if pad {
            self.buf.push(SCRATCH);
        }
        call(self);
        if pad {
            self.buf.pop(SCRATCH);
        }
        for &gpr in kept.iter().rev() {
            self.buf.pop(gpr);
        }
    }

    pub(super) fn after_call(&mut self) {
        for number in 0..=5 {
            let reg = Reg::new(number).expect("there are more than 5");
            self.set_known_bits(reg, 64);
        }
        self.flags = Flags::NONE;
    }

    pub(super) fn write_helper_table(&mut self) {
        if !self.helpers.is_empty() {
            self.buf.align(8);
        }
        for index in 0..self.helpers.len() {
            let (address, label) = self.helpers[index];
            self.buf.bind(label);
            self.buf.data(address, 8);
        }
    }

    /// True if the slot is a backward jump that consumes budget.
    pub(super) fn consumes_budget(&self, slot: usize) -> bool {
        let target = || lower::flow::jump_target(&self.insns[slot], slot);
        self.has_budget() && target().is_some_and(|target| target <= slot)
    }

    /// Before a backward jump of a program without proven termination: decrements the
    /// budget and ends the run when it is used up. Only `goto` jumps backward in such
    /// programs.
    pub(super) fn consume_budget(&mut self, slot: usize) {
        if self.consumes_budget(slot) {
            let budget = self.context_word(NativeContext::BUDGET);
            let zero = self.zero_label();
            self.buf.alu_store_imm(Alu::Sub, Size::DW, budget, 1);
            self.buf.jump_if(Cc::S, zero);
        }
    }
}
