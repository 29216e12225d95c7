//! Code generation, whatever the processor.
//!
//! `generator.rs` is the pass over the program; `branch.rs`, `comparison_tree.rs`, `packet.rs`,
//! `call.rs`, `hash_lookup.rs`, `tail_call.rs` and `deadline.rs` decide on the code of their
//! instructions, `memory.rs`, `arithmetic.rs` and `address.rs` on what is fused with what; `frame.rs` assigns
//! registers. `target.rs` is the interface of a processor, which has an assembler and a selection
//! of its own.

mod address;
mod arithmetic;
mod branch;
mod call;
mod comparison_tree;
mod deadline;
mod frame;
mod generator;
mod hash_lookup;
mod memory;
mod packet;
mod tail_call;
mod target;

pub(crate) use arithmetic::{Arithmetic, Extension, all, bits};
pub(crate) use frame::Frame;
pub(crate) use generator::Generator;
pub(crate) use memory::bits_of;
pub(crate) use target::{
    Alu, Assembler, Cc, Label, Layout, LookupRegs, Mem, Register, Shift, Target,
};

use lower::LoweredCode;

use crate::analysis::Analysis;
use crate::{Applied, Options};

/// Generated code, which has no address yet.
pub(crate) struct Code<'a, A> {
    asm: &'a A,
    /// Its length in bytes.
    pub(crate) len: usize,
    /// The offset of the program's entry.
    pub(crate) entry: usize,
    /// The offset of its entry for tail calls.
    pub(crate) tail_entry: usize,
    /// The offsets of the slots at the entries of functions, in the order of the functions.
    pub(crate) entry_slots: Vec<u32>,
    /// True if the code uses the native context.
    pub(crate) uses_context: bool,
    /// Number of times that each optimization was applied.
    pub(crate) applied: Applied,
}

impl<A: Assembler> Code<'_, A> {
    /// Writes the code into memory of exactly its length, at any address.
    pub(crate) fn write(&self, out: &mut [u8]) {
        self.asm.write(out);
    }

    /// Slot and offset of each piece of the code, in ascending order of offset; slot
    /// `u32::MAX` for pieces that belong to none.
    pub(crate) fn code_map(&self) -> Vec<(u32, u32)> {
        self.asm.code_map()
    }
}

/// Generates the code of a program and passes it to `then`. It is generated again, with longer
/// entries of tables, if short ones do not reach.
pub(crate) fn compile<T: Target, R>(
    target: T,
    program: &LoweredCode,
    options: &Options,
    then: impl FnOnce(Code<'_, T::Assembler>) -> R,
) -> R {
    let analysis = Analysis::of(program, options.optimizations);
    let generator = |long_tables| Generator::new(program, &analysis, target, options, long_tables);
    let mut short = generator(false);
    let code = short.generate();
    match code.asm.tables_reach() {
        true => then(code),
        false => then(generator(true).generate()),
    }
}
