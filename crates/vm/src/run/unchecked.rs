//! eBPF programs whose safety the caller asserts instead of the verifier.

use isa::ebpf::Insn;

/// An eBPF program whose safety the caller asserts instead of the verifier.
#[derive(Clone, Debug)]
pub struct Unchecked(Vec<Insn>);

impl Unchecked {
    /// A program that engines run without checks at run time, interpreted or as native
    /// code.
    ///
    /// Its structure (jumps, calls, reserved fields, writes to the frame pointer) is not
    /// part of the assertion: lowering checks it.
    ///
    /// # Safety
    /// In every run, given the memory, the context and the packet that the caller passes,
    /// and any values in registers and stack slots that it has not written, the program
    /// - accesses only its stack (512 bytes below `r10` in each function, and what a
    ///   caller passes of its own), the memory or context that `r1` points to on entry,
    ///   and what helpers return to it;
    /// - aligns the operand of every atomic instruction to its size;
    /// - passes every helper the arguments that its prototype demands;
    /// - terminates.
    ///
    /// Linux's verifier proves this for the kernel's memory and contexts.
    pub const unsafe fn assume_safe(insns: Vec<Insn>) -> Unchecked {
        Unchecked(insns)
    }

    /// The instructions, one for each slot.
    pub fn insns(&self) -> &[Insn] {
        &self.0
    }

    /// The instructions, one for each slot.
    pub fn into_insns(self) -> Vec<Insn> {
        self.0
    }
}
