//! Native code to look at, not to run.

use std::ops::Range;

use isa::ebpf::Insn;
use lower::{Lowered, Malformed};
use vm::Trusted;

use crate::Applied;
use crate::backend::{Backend, Code, Host, Request};
use crate::native::{Options, pieces};

/// The code that [`Native::compile`](crate::Native::compile) would install, as it
/// is at address 0. Nothing can enter it, so it needs no evidence: only a form
/// that can be compiled.
#[derive(Clone, Debug)]
pub struct Draft {
    bytes: Vec<u8>,
    entry: usize,
    places: Vec<(u32, u32)>,
    applied: Applied,
}

impl Draft {
    /// Compiles a program.
    pub fn of(program: &Lowered, options: &Options) -> Draft {
        let request = Request {
            map: true,
            deadline: options.deadline,
            optimizations: options.optimizations,
            ..Request::default()
        };
        Host::new(options.features).compile(program, request, |code| {
            let mut bytes = vec![0; code.len()];
            code.write(&mut bytes);
            Draft {
                bytes,
                entry: code.entry(),
                places: code.places(),
                applied: code.applied(),
            }
        })
    }

    /// Compiles instructions that nobody vouches for.
    pub fn of_insns(insns: Vec<Insn>, options: &Options) -> Result<Draft, Malformed> {
        // SAFETY: what is promised is promised of runs, and there are none: neither
        // the trusted program nor the lowered one leaves this function.
        let program = unsafe { Trusted::assume_safe(insns) };
        Ok(Draft::of(&Lowered::from_trusted(program)?, options))
    }

    /// The machine code, and behind it the addresses of what it calls.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the program begins.
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// How often each optimization was applied.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Pieces of the code in their order; see [`Native::map`](crate::Native::map).
    pub fn map(&self) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
        pieces(&self.places, self.bytes.len())
    }
}
