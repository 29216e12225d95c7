//! The x86-64 backend.
//!
//! `generator.rs` walks over the program, `rotation.rs` in which order; `alu.rs`,
//! `copy.rs`, `shift.rs`, `byte_order.rs`, `divide.rs`, `address.rs`, `memory.rs`,
//! `packet.rs`, `branch.rs`, `join.rs`, `look_up.rs` and `call.rs` write instructions of
//! their kinds; `deadline.rs` writes the looks at a deadline; `frame.rs` decides where
//! values live; `asm.rs` encodes into `buffer.rs`.

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
mod features;
mod frame;
mod generator;
mod join;
mod look_up;
mod memory;
mod packet;
mod reg;
mod rotation;
mod shift;

pub use features::Features;

use lower::Lowered;

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
    type Code = Settled;

    fn compile(&self, program: &Lowered, request: Request) -> Settled {
        let analysis = Analysis::of(program, self.features.counts());
        let settled = Settled::new(program, &analysis, self.features, request.clone(), false);
        if settled.buf.tables_reach() {
            return settled;
        }
        Settled::new(program, &analysis, self.features, request, true)
    }
}

/// Code whose jumps have their lengths.
pub(crate) struct Settled {
    buf: Buffer,
    len: usize,
    entry: usize,
    wants_env: bool,
    slots: usize,
}

impl Settled {
    /// `long_tables` hold any distance.
    fn new(
        program: &Lowered,
        analysis: &Analysis,
        features: Features,
        request: Request,
        long_tables: bool,
    ) -> Settled {
        let mut generator = Generator::new(program, analysis, features, request);
        if long_tables {
            generator.buf = generator.buf.with_long_tables();
        }
        let wants_env = generator.generate();
        let entry = generator.function_label(0);
        let mut buf = generator.into_buffer();
        Settled {
            len: buf.settle(),
            entry: buf.offset(entry) as usize,
            wants_env,
            slots: program.insns().len(),
            buf,
        }
    }
}

impl Code for Settled {
    fn len(&self) -> usize {
        self.len
    }

    fn entry(&self) -> usize {
        self.entry
    }

    fn wants_env(&self) -> bool {
        self.wants_env
    }

    fn write(&self, out: &mut [u8]) {
        self.buf.write(out);
    }

    fn places(&self) -> Vec<(u32, u32)> {
        self.buf.places(self.slots)
    }
}
