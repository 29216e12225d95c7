//! The word of a host that an eBPF program is safe.

use isa::ebpf::Insn;

/// An eBPF program that a host vouches for.
#[derive(Clone, Debug)]
pub struct Trusted(Vec<Insn>);

impl Trusted {
    /// Takes the program on the caller's word. Engines run it without a check at
    /// run time, interpreted or as native code.
    ///
    /// Its form need not be vouched for: whoever lowers it looks at that (jumps,
    /// calls, reserved fields, the frame pointer never written).
    ///
    /// # Safety
    /// In every run that the host starts, given the memory, the context and the
    /// packet that the host starts it with, and whatever values registers and
    /// stack hold that it has not written, the program
    /// - reads and writes nothing but its stack (512 bytes below `r10` in each
    ///   function, and what a caller hands it of its own), the memory or the
    ///   context that `r1` points to on entry, and what helpers return to it;
    /// - aligns the operand of every atomic instruction to its size;
    /// - calls every helper with the arguments that the helper expects;
    /// - ends.
    ///
    /// Linux's verifier proves all of that for the kernel's memory and contexts.
    pub const unsafe fn assume_safe(insns: Vec<Insn>) -> Trusted {
        Trusted(insns)
    }

    /// The code, one element per slot.
    pub fn insns(&self) -> &[Insn] {
        &self.0
    }

    /// The code, one element per slot.
    pub fn into_insns(self) -> Vec<Insn> {
        self.0
    }
}
