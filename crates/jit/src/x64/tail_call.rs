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
use spec::calls::MAX_TAIL_CALLS;
use vm::{CELL_BYTES, TailTable};

use super::asm::Alu;
use super::buffer::Label;
use super::frame::{CALLEE_SAVED, ENTRY_CONTEXT, SCRATCH};
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};
use crate::native::NativeContext;

/// Registers of the arguments: the table, and the index, whose low 32 bits count.
const TABLE: Gpr = Gpr::RSI;
const INDEX: Gpr = Gpr::RDX;

/// Bytes that align the stack for the call in an entry with a frame.
const PADDING: i32 = 8;

impl Generator<'_> {
    /// True if a function of the program makes tail calls.
    pub(super) fn makes_tail_calls(&self) -> bool {
        let functions = 0..self.program.functions().len();
        let mut usages = functions.map(|index| self.analysis.usage(index));
        usages.any(|usage| usage.tail_calls)
    }

    /// True if the entry has a frame of its own, from which a run ends.
    pub(super) fn has_entry_frame(&self) -> bool {
        self.deadline_checks.wanted && (self.tail_target || self.makes_tail_calls())
    }

    /// Writes what comes before the tail entry, and returns the label of the entry.
    pub(super) fn write_entry(&mut self) -> Label {
        let tail_entry = self.function_label(0);
        if !self.has_entry_frame() && !self.has_entry_slots() {
            return tail_entry;
        }
        let entry = self.buf.new_label();
        self.write_entry_slot(entry);
        if self.has_entry_frame() {
            for gpr in CALLEE_SAVED {
                self.buf.push(gpr);
            }
            self.buf.alu_imm(Alu::Sub, Width::W64, Gpr::RSP, PADDING);
            let stack = Mem::at(ENTRY_CONTEXT, NativeContext::STACK as i32);
            self.buf.store(Size::DW, stack, Gpr::RSP);
            self.buf.call(tail_entry);
            self.leave_entry_frame();
        }
        entry
    }

    /// Returns from the frame of the entry, whose stack pointer `rsp` is.
    pub(super) fn leave_entry_frame(&mut self) {
        self.buf.alu_imm(Alu::Add, Width::W64, Gpr::RSP, PADDING);
        for gpr in CALLEE_SAVED.into_iter().rev() {
            self.buf.pop(gpr);
        }
        self.buf.ret();
    }

    /// Compiles a tail call through the table in `r2`.
    pub(super) fn tail_call(&mut self) {
        let falls_through = self.buf.new_label();
        let count = Mem::at(TABLE, 0);
        self.buf.alu_load(Alu::Cmp, Width::W32, INDEX, count);
        self.buf.jump_if(Cc::Ae, falls_through);
        self.check_tail_calls(falls_through);
        self.buf.mov(Width::W32, INDEX, INDEX);
        let slot = Mem {
            base: TABLE,
            index: Some((INDEX, CELL_BYTES.ilog2() as u8)),
            disp: TailTable::FIRST as i32,
        };
        self.enter_target(slot, falls_through);
    }

    /// Compiles a tail call through the slot at an address.
    pub(super) fn tail_call_of_slot(&mut self, address: u64) {
        let falls_through = self.buf.new_label();
        self.check_tail_calls(falls_through);
        self.buf.set_keeping_flags(SCRATCH, address);
        self.enter_target(Mem::at(SCRATCH, 0), falls_through);
    }

    /// Falls through if the run has made all its tail calls.
    fn check_tail_calls(&mut self, falls_through: Label) {
        let count = self.context_word(NativeContext::TAIL_CALLS);
        let most = MAX_TAIL_CALLS as i32;
        self.buf.alu_store_imm(Alu::Cmp, Size::W, count, most);
        self.buf.jump_if(Cc::Ae, falls_through);
    }

    /// Jumps to the tail entry whose address a slot holds, with the frame unwound; falls
    /// through if it is empty. The slot is loaded once.
    fn enter_target(&mut self, slot: Mem, falls_through: Label) {
        self.buf.load(Size::DW, None, SCRATCH, slot);
        self.buf.test(Width::W64, SCRATCH, SCRATCH);
        self.buf.jump_if(Cc::E, falls_through);
        let count = self.context_word(NativeContext::TAIL_CALLS);
        self.buf.alu_store_imm(Alu::Add, Size::W, count, 1);
        let env = count.base;
        if env != ENTRY_CONTEXT {
            self.buf.mov(Width::W64, ENTRY_CONTEXT, env);
        }
        self.store_fuel();
        self.free_frame();
        self.jump_to_scratch();
        self.buf.bind(falls_through);
        self.after_call();
    }
}
