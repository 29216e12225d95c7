//! Calls, prologues and epilogues.

use std::mem::offset_of;

use isa::ebpf::{Reg, Size, Width};
use lower::{Evidence, LoweredCall};
use spec::bits::BitOp;
use vm::{FrameRecord, MAY_GOTO_LOOPS};

use super::generator::{Flags, Generator};
use super::target::{Alu, Assembler, Cc, Label, Layout, Mem, Target};
use crate::native::NativeContext;

/// Length from which on an epilogue is shared by jumps instead of repeated.
const SHARED_EPILOGUE: usize = 4;

impl<T: Target> Generator<'_, T> {
    /// Writes the prologue: saves callee-saved registers and allocates the stack.
    pub(crate) fn write_prologue(&mut self) {
        let frame = &self.frame;
        self.asm
            .enter_frame(frame.has_frame_pointer(), &frame.saved, frame.reserved);
        match self.program.evidence() {
            Evidence::Verified(_) => self.clear_stack(),
            // They read no stack that they did not write.
            Evidence::Classic(_) | Evidence::CallerAsserted => {}
        }
        if let Some(offset) = self.frame.may_goto {
            let top = self.frame.stack_top();
            let counter = Mem::at(top.base, top.disp + offset);
            self.asm.store_imm(Size::DW, counter, MAY_GOTO_LOOPS as i32);
        }
        if let Some(env) = self.frame.env
            && self.function.start == 0
            && env != T::ENTRY_CONTEXT
        {
            self.asm.mov(Width::W64, env, T::ENTRY_CONTEXT);
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
            self.asm.store_imm(size, place, 0);
            left -= size.bytes() as i32;
        }
    }

    /// The memory operand of a field of the frame's record.
    fn record_field(&self, field: usize) -> Option<Mem<T::Reg>> {
        let top = self.frame.stack_top();
        let record = self.frame.record?;
        Some(Mem::at(top.base, top.disp + record + field as i32))
    }

    /// Loads the address of the run context into a register that holds nothing at calls and at
    /// the ends of functions; returns the memory operand of the head of its list of frames.
    fn load_frames(&mut self) -> Mem<T::Reg> {
        let run_context = self.context_word(NativeContext::RUN_CONTEXT);
        self.asm.load(Size::DW, None, T::RUN_CONTEXT, run_context);
        Mem::at(T::RUN_CONTEXT, NativeContext::FRAMES as i32)
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
        self.asm.store_imm(Size::DW, bytes, self.frame.stack_bytes);
        self.asm.set_keeping_flags(T::SPARE, address_slots);
        self.asm.store(Size::DW, slots, T::SPARE);
        let frames = self.load_frames();
        self.asm.load(Size::DW, None, T::SPARE, frames);
        self.asm.store(Size::DW, next, T::SPARE);
        self.asm.lea(Width::W64, T::SPARE, next);
        self.asm.store(Size::DW, frames, T::SPARE);
    }

    /// Unlinks the record of the frame, before the frame is freed.
    fn unlink_frame(&mut self) {
        if let Some(next) = self.record_field(offset_of!(FrameRecord, next)) {
            let frames = self.load_frames();
            self.asm.load(Size::DW, None, T::SPARE, next);
            self.asm.store(Size::DW, frames, T::SPARE);
        }
    }

    /// Returns from the function with the value of the result register.
    pub(crate) fn exit(&mut self) {
        if let Some(label) = self.epilogue {
            return self.asm.jump(label);
        }
        if self.epilogue_len() > SHARED_EPILOGUE {
            let label = self.asm.new_label();
            self.asm.bind(label);
            self.epilogue = Some(label);
        }
        self.write_epilogue();
    }

    /// Estimated length of the epilogue in bytes.
    fn epilogue_len(&self) -> usize {
        let unlinked = if self.frame.record.is_some() { 16 } else { 0 };
        T::epilogue_len(&self.frame) + unlinked
    }

    fn write_epilogue(&mut self) {
        self.return_fuel();
        self.free_frame();
        self.asm.ret();
    }

    /// Restores the registers and the stack pointer of the caller.
    pub(crate) fn free_frame(&mut self) {
        self.unlink_frame();
        let frame = &self.frame;
        self.asm
            .leave_frame(frame.has_frame_pointer(), &frame.saved, frame.reserved);
    }

    /// Label of the code that returns 0; [`Generator::write_return_zero`] writes it.
    pub(crate) fn zero_label(&mut self) -> Label {
        *self.return_zero.get_or_insert_with(|| self.asm.new_label())
    }

    pub(crate) fn write_return_zero(&mut self) {
        if let Some(label) = self.return_zero {
            self.asm.bind(label);
            self.asm.set(T::RESULT, 0);
            self.exit();
        }
    }

    /// The memory operand of a field of the native context.
    pub(crate) fn context_word(&mut self, offset: usize) -> Mem<T::Reg> {
        let env = self
            .frame
            .env
            .expect("the frame has a native context if the function uses it");
        self.context_at(env, offset)
    }

    /// The memory operand of a field of the native context, whose address is in a register. Code
    /// comes to the context by this function alone, which records that the entry takes one.
    pub(crate) fn context_at(&mut self, context: T::Reg, offset: usize) -> Mem<T::Reg> {
        self.uses_context = true;
        Mem::at(context, offset as i32)
    }

    /// Compiles the call at a slot.
    pub(crate) fn call(&mut self, slot: usize, call: LoweredCall) {
        match call {
            LoweredCall::Local(distance) => {
                self.call_function((slot as i64 + 1 + i64::from(distance)) as usize);
            }
            LoweredCall::ProcessorId => self.processor(),
            LoweredCall::TailCall => self.tail_call(),
            LoweredCall::TailSlot(index) => self.tail_call_of_slot(self.program.tail_slot(index)),
            LoweredCall::HashLookup(index) => self.hash_lookup(index),
            LoweredCall::Count(index) => self.count(self.program.counter(index)),
            LoweredCall::Bits(BitOp::Bitrev) => self.call_helper(call),
            LoweredCall::Bits(op) => T::bit_operation(self, op),
            LoweredCall::Helper(_)
            | LoweredCall::Kfunc(_)
            | LoweredCall::Host(_)
            | LoweredCall::MapFunction(_)
            | LoweredCall::BeginCallbacks
            | LoweredCall::NextCallback
            | LoweredCall::PacketLoad => self.call_helper(call),
        }
    }

    /// Increments the counter at an address.
    fn count(&mut self, address: u64) {
        self.asm.set_keeping_flags(T::SCRATCH, address);
        let counter = Mem::at(T::SCRATCH, 0);
        match self.program.shares_counters() {
            true => self.asm.lock_alu_store_imm(Alu::Add, counter, 1),
            false => self.asm.alu_store_imm(Alu::Add, Size::DW, counter, 1),
        }
    }

    fn call_function(&mut self, start: usize) {
        let label = self.function_label(start);
        self.asm.call(label);
        self.after_call();
    }

    /// Compiles the call of a function of the process.
    pub(crate) fn call_helper(&mut self, call: LoweredCall) {
        let function = self.program.function(call);
        let function = function.expect("helpers of a lowered program exist");
        let run_context = self.context_word(NativeContext::RUN_CONTEXT);
        self.asm.load(Size::DW, None, T::RUN_CONTEXT, run_context);
        self.call_host(function as *const () as u64);
        self.after_call();
    }

    /// Compiles `bpf_get_smp_processor_id` to a load from the native context.
    fn processor(&mut self) {
        let number = self.context_word(NativeContext::PROCESSOR);
        self.asm.load(Size::W, None, T::RESULT, number);
        self.set_known_bits(Reg::R0, 32);
    }

    /// Calls a host function through its address in a table after the code.
    pub(crate) fn call_host(&mut self, address: u64) {
        let known_bits = self.helpers.iter().find(|helper| helper.0 == address);
        let label = match known_bits {
            Some(&(_, label)) => label,
            None => {
                let label = self.asm.new_label();
                self.helpers.push((address, label));
                label
            }
        };
        T::call_through(self, label);
    }

    /// Writes a call that preserves these registers, where the stack pointer is as at the entry of
    /// a function.
    pub(crate) fn preserve(&mut self, kept: &[T::Reg], call: impl FnOnce(&mut Self)) {
        self.asm.save(kept);
        call(self);
        self.asm.restore(kept);
    }

    pub(crate) fn after_call(&mut self) {
        for number in 0..=5 {
            let reg = Reg::new(number).expect("there are more than 5");
            self.set_known_bits(reg, 64);
        }
        self.flags = Flags::NONE;
    }

    pub(crate) fn write_helper_table(&mut self) {
        if !self.helpers.is_empty() {
            self.asm.align(8);
        }
        for index in 0..self.helpers.len() {
            let (address, label) = self.helpers[index];
            self.asm.bind(label);
            self.asm.data(address, 8);
        }
    }

    /// True if the slot is a backward jump that consumes budget.
    pub(crate) fn consumes_budget(&self, slot: usize) -> bool {
        let target = || lower::flow::jump_target(&self.insns[slot], slot);
        self.has_budget() && target().is_some_and(|target| target <= slot)
    }

    /// Before a backward jump of a program without proven termination: decrements the
    /// budget and ends the run when it is used up. Only `goto` jumps backward in such
    /// programs.
    pub(crate) fn consume_budget(&mut self, slot: usize) {
        if self.consumes_budget(slot) {
            let budget = self.context_word(NativeContext::BUDGET);
            let zero = self.zero_label();
            self.asm.alu_store_imm(Alu::Sub, Size::DW, budget, 1);
            self.asm.jump_if(Cc::Negative, zero);
        }
    }
}
