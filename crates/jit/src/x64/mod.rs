//! The x86-64 backend.
//!
//! `generator.rs` is the pass over the program; `alu.rs`, `copy.rs`, `shift.rs`,
//! `byte_order.rs`, `divide.rs`, `address.rs`, `memory.rs`, `packet.rs`, `branch.rs`,
//! `comparison_tree.rs`, `call.rs`, `hash_lookup.rs` and `tail_call.rs` select machine
//! instructions; `retpoline.rs` has the indirect branches;
//! `deadline.rs` adds deadline checks; `frame.rs` assigns registers;
//! `asm.rs` has a method for each machine instruction, which `encode.rs` encodes into
//! `buffer.rs`.

mod address;
mod alu;
mod asm;
mod bits;
mod branch;
mod buffer;
mod byte_order;
mod call;
mod comparison_tree;
mod copy;
mod deadline;
mod divide;
mod encode;
mod features;
mod form;
mod frame;
mod generator;
mod hash_lookup;
mod memory;
mod packet;
mod reg;
mod retpoline;
mod shift;
mod tail_call;

pub use features::Features;

use lower::LoweredCode;

use crate::Applied;
use crate::analysis::Analysis;
use crate::backend::{Backend, GeneratedCode, Request};
use buffer::Buffer;
use generator::Generator;

/// The x86-64 code generator.
pub(crate) struct X64 {
    features: Features,
}

impl X64 {
    pub(crate) fn new(features: Features) -> X64 {
        X64 { features }
    }
}

impl Backend for X64 {
    type Code<'a> = Relaxed<'a>;

    fn compile<R>(
        &self,
        program: &LoweredCode,
        request: Request,
        then: impl FnOnce(Relaxed<'_>) -> R,
    ) -> R {
        let analysis = Analysis::of(program, request.optimizations);
        self.generate(program, &analysis, &request, then)
    }
}

impl X64 {
    /// Generates code; repeats it with 32-bit table entries if 16-bit ones do not reach.
    fn generate<R>(
        &self,
        program: &LoweredCode,
        analysis: &Analysis,
        request: &Request,
        then: impl FnOnce(Relaxed<'_>) -> R,
    ) -> R {
        let generator =
            |long_tables| Generator::new(program, analysis, self.features, request, long_tables);
        let mut short = generator(false);
        let code = short.generate();
        match code.buf.tables_reach() {
            true => then(code),
            false => then(generator(true).generate()),
        }
    }
}

/// Generated code after branch relaxation.
pub(crate) struct Relaxed<'a> {
    buf: &'a Buffer,
    len: usize,
    entry: usize,
    tail_entry: usize,
    entry_slots: Vec<u32>,
    uses_context: bool,
    applied: Applied,
}

impl GeneratedCode for Relaxed<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn entry(&self) -> usize {
        self.entry
    }

    fn tail_entry(&self) -> usize {
        self.tail_entry
    }

    fn entry_slots(&self) -> &[u32] {
        &self.entry_slots
    }

    fn uses_context(&self) -> bool {
        self.uses_context
    }

    fn write(&self, out: &mut [u8]) {
        self.buf.write(out);
    }

    fn code_map(&self) -> Vec<(u32, u32)> {
        self.buf.code_map()
    }

    fn applied(&self) -> Applied {
        self.applied
    }
}
