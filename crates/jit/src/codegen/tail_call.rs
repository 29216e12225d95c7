//! Tail calls, and the two entries of a program.
//!
//! A tail call loads the address of its target from the slot of the program array (see
//! [`vm::TailTable`]), counts, unwinds the frame of its function and jumps: the target
//! returns to where the function would have. It jumps to the target's *tail entry*, which
//! takes what the entry takes. The count belongs to the run and is in the native context,
//! where it begins at 0, so it needs no register in subprograms.
//!
//! ```text
//! entry:       five bytes for a trampoline             only with entry slots
//! tail entry:  prologue, body
//! ```
//!
//! # Deadlines
//!
//! A run whose deadline has passed ends at any call depth, also in a program that was
//! entered by a tail call. Programs that make tail calls or are targets then keep no frame
//! to return to; instead their entry calls the program from a frame of its own, the same in
//! all of them, which saves all callee-saved registers. A run ends by returning from it.

use isa::ebpf::{Size, Width};
use spec::limits;
use vm::{CELL_BYTES, TailTable};

use super::generator::Generator;
use super::target::{Alu, Assembler, Cc, Label, Layout, Mem, Target};
use crate::native::NativeContext;

/// Bytes that align the stack for the call in an entry with a frame.
const PADDING: i32 = 8;

impl<T: Target> Generator<'_, T> {
    /// True if a function of the program makes tail calls.
    pub(crate) fn makes_tail_calls(&self) -> bool {
        let functions = 0..self.program.functions().len();
        let mut usages = functions.map(|index| self.analysis.usage(index));
        usages.any(|usage| usage.tail_calls)
    }

    /// True if the entry has a frame of its own, from which a run ends.
    pub(crate) fn has_entry_frame(&self) -> bool {
        self.deadline_checks.wanted && (self.tail_target || self.makes_tail_calls())
    }

    /// Writes what comes before the tail entry, and returns the label of the entry.
    pub(crate) fn write_entry(&mut self) -> Label {
        let tail_entry = self.function_label(0);
        if !self.has_entry_frame() && !self.has_entry_slots() {
            return tail_entry;
        }
        let entry = self.asm.new_label();
        self.write_entry_slot(entry);
        if self.has_entry_frame() {
            self.asm.enter_frame(false, T::CALLEE_SAVED, PADDING);
            let stack = self.context_at(T::ENTRY_CONTEXT, NativeContext::STACK);
            self.asm.store(Size::DW, stack, T::STACK_POINTER);
            self.asm.call(tail_entry);
            self.leave_entry_frame();
        }
        entry
    }

    /// Returns from the frame of the entry, at its stack pointer.
    pub(crate) fn leave_entry_frame(&mut self) {
        self.asm.leave_frame(false, T::CALLEE_SAVED, PADDING);
        self.asm.ret();
    }

    /// Compiles a tail call through the table in `r2`.
    pub(crate) fn tail_call(&mut self) {
        let falls_through = self.asm.new_label();
        // The table, and the index, whose low 32 bits count.
        let [_, table, index, ..] = T::ARGUMENTS;
        let count = Mem::at(table, 0);
        self.asm.alu_load(Alu::Cmp, Width::W32, index, count);
        self.asm.jump_if(Cc::AboveEqual, falls_through);
        self.check_tail_calls(falls_through);
        self.asm.mov(Width::W32, index, index);
        let slot = Mem {
            base: table,
            index: Some((index, CELL_BYTES.ilog2() as u8)),
            disp: TailTable::FIRST as i32,
        };
        self.enter_target(slot, falls_through);
    }

    /// Compiles a tail call through the slot at an address.
    pub(crate) fn tail_call_of_slot(&mut self, address: u64) {
        let falls_through = self.asm.new_label();
        self.check_tail_calls(falls_through);
        self.asm.set_keeping_flags(T::SCRATCH, address);
        self.enter_target(Mem::at(T::SCRATCH, 0), falls_through);
    }

    /// Falls through if the run has made all its tail calls.
    fn check_tail_calls(&mut self, falls_through: Label) {
        let count = self.context_word(NativeContext::TAIL_CALLS);
        let most = limits::TAIL_CALLS as i32;
        self.asm.alu_store_imm(Alu::Cmp, Size::W, count, most);
        self.asm.jump_if(Cc::AboveEqual, falls_through);
    }

    /// Jumps to the tail entry whose address a slot holds, with the frame unwound; falls
    /// through if it is empty. The slot is loaded once.
    fn enter_target(&mut self, slot: Mem<T::Reg>, falls_through: Label) {
        self.asm.load(Size::DW, None, T::SCRATCH, slot);
        self.asm.test(Width::W64, T::SCRATCH, T::SCRATCH);
        self.asm.jump_if(Cc::Equal, falls_through);
        let count = self.context_word(NativeContext::TAIL_CALLS);
        self.asm.alu_store_imm(Alu::Add, Size::W, count, 1);
        let env = count.base;
        if env != T::ENTRY_CONTEXT {
            self.asm.mov(Width::W64, T::ENTRY_CONTEXT, env);
        }
        self.store_fuel();
        self.free_frame();
        T::jump_to_scratch(self);
        self.asm.bind(falls_through);
        self.after_call();
    }
}
