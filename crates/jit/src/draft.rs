//! Native code for inspection, without executable memory.

use std::ops::Range;

use isa::ebpf::Insn;
use lower::{Lowered, LoweredCode, Malformed};
use vm::Unchecked;

use crate::Applied;
use crate::backend::Host;
use crate::codegen;
use crate::native::{Options, code_map, pieces};

/// The code that [`Native::compile`](crate::Native::compile) would install, as it is at
/// address 0. It cannot be run, so it needs no evidence of safety.
#[derive(Clone, Debug)]
pub struct Draft {
    bytes: Vec<u8>,
    entry: usize,
    entry_slots: Vec<u32>,
    code_map: Vec<(u32, u32)>,
    applied: Applied,
}

impl Draft {
    /// Compiles a program.
    pub fn of(program: &LoweredCode, options: &Options) -> Draft {
        let options = Options {
            map: true,
            ..*options
        };
        codegen::compile(Host::new(options.features), program, &options, |code| {
            let mut bytes = vec![0; code.len];
            code.write(&mut bytes);
            Draft {
                bytes,
                entry: code.entry,
                code_map: code_map(program, &code),
                entry_slots: code.entry_slots,
                applied: code.applied,
            }
        })
    }

    /// Compiles instructions without evidence of safety; the code is never run.
    pub fn from_insns(insns: Vec<Insn>, options: &Options) -> Result<Draft, Malformed> {
        // SAFETY: the assertion is about runs, and there are none: neither the program
        // nor its lowered form leaves this function.
        let program = unsafe { Unchecked::assume_safe(insns) };
        let program = Lowered::from_unchecked(program)?;
        Ok(Draft::of(&program, options))
    }

    /// The machine code, followed by its tables.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offset of the program's entry.
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// Offsets of the slots at the entries; see
    /// [`NativeCode::entry_slots`](crate::NativeCode::entry_slots).
    pub fn entry_slots(&self) -> &[u32] {
        &self.entry_slots
    }

    /// Number of times that each optimization was applied.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Pieces of the code in ascending order; see
    /// [`NativeCode::map`](crate::NativeCode::map).
    pub fn map(&self) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
        pieces(&self.code_map, self.bytes.len())
    }
}
