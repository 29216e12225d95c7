//! The x86-64 backend.
//!
//! `generator.rs` walks over the program; `alu.rs`, `copy.rs`, `shift.rs`, `byte_order.rs`,
//! `divide.rs`, `address.rs`, `memory.rs`, `packet.rs`, `branch.rs`, `merge.rs`,
//! `look_up.rs` and `call.rs` select machine instructions; `deadline.rs` adds deadline
//! checks and `blinding.rs` constant blinding; `frame.rs` assigns registers; `asm.rs` has a
//! method for each machine instruction, which `encode.rs` encodes into `buffer.rs`.

mod address;
mod alu;
mod asm;
mod blinding;
mod branch;
mod buffer;
mod byte_order;
mod call;
mod copy;
mod deadline;
mod divide;
mod encode;
mod features;
mod frame;
mod generator;
mod look_up;
mod memory;
mod merge;
mod packet;
mod reg;
mod shift;

pub use features::Features;

use lower::Lowered;

use crate::Applied;
use crate::analysis::Analysis;
use crate::backend::{Backend, Code, Request};
use buffer::Buffer;
use generator::Generator;

/// See the module's text.
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
        program: &Lowered,
        request: Request,
        then: impl FnOnce(Relaxed<'_>) -> R,
    ) -> R {
        let analysis = Analysis::of(program, request.optimizations);
        let result = self.generate(program, &analysis, &request, then);
        analysis.end();
        result
    }
}

impl X64 {
    /// Generates code, anew if its tables or the room for it turn out to hold too little.
    #[inline(always)]
    fn generate<R>(
        &self,
        program: &Lowered,
        analysis: &Analysis,
        request: &Request,
        then: impl FnOnce(Relaxed<'_>) -> R,
    ) -> R {
        let mut long_tables = false;
        let mut room = 0;
        loop {
            // The only call, so that it is made in its place.
            let mut generator = Generator::new(program, analysis, self.features, request);
            generator.buf.make_room(room);
            if long_tables {
                generator.buf.lengthen_tables();
            }
            let code = generator.generate();
            if !code.buf.is_complete() {
                room = code.buf.wanted_room();
            } else if code.buf.tables_reach() {
                return then(code);
            } else {
                long_tables = true;
            }
        }
    }
}

/// Code whose jumps have their lengths.
pub(crate) struct Relaxed<'a> {
    buf: &'a Buffer,
    len: usize,
    entry: usize,
    uses_context: bool,
    applied: Applied,
}

impl Code for Relaxed<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn entry(&self) -> usize {
        self.entry
    }

    fn uses_context(&self) -> bool {
        self.uses_context
    }

    fn write(&self, out: &mut [u8]) {
        self.buf.write(out);
    }

    fn places(&self) -> Vec<(u32, u32)> {
        self.buf.places()
    }

    fn applied(&self) -> Applied {
        self.applied
    }
}
