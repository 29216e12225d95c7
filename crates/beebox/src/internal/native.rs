//! The native code of programs, for inspection.
//!
//! ```
//! use beebox::internal::ebpf::assemble;
//! use beebox::internal::native::{NativeDraft, Processor};
//!
//! let draft = NativeDraft::from_insns(assemble("w0 = 2\nexit\n")?, Processor::Baseline)?;
//! assert!(!draft.bytes().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use ::classic::Converted;
use isa::ebpf::{Callee, Imm64, Insn, RawInsn, Value64, decode};
use jit::{Draft, Features, Options};
use lower::{ClassicFilter, Malformed};
use spec::kfuncs::KernelFunction;
use spec::{Kernel, calls};

/// The x86-64 processor that native code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Processor {
    /// This machine's, with its extensions.
    #[default]
    Host,
    /// Any x86-64 processor.
    Baseline,
}

/// Options of native code for inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CodeOptions {
    /// The processor that it is for.
    pub processor: Processor,
    /// Indirect jumps and calls go through a retpoline.
    pub retpoline: bool,
    /// Functions begin with a slot of five bytes, which a call or jump can replace.
    pub entry_slots: bool,
}

impl From<Processor> for CodeOptions {
    /// Plain code for a processor.
    fn from(processor: Processor) -> CodeOptions {
        CodeOptions {
            processor,
            ..CodeOptions::default()
        }
    }
}

impl CodeOptions {
    fn compiler(self) -> Options {
        let features = match self.processor {
            Processor::Host => Features::detect(),
            Processor::Baseline => Features::PLAIN,
        };
        Options {
            features,
            retpoline: self.retpoline,
            entry_slots: self.entry_slots,
            ..Options::default()
        }
    }
}

/// Machine code of a program, as it would be at address 0. It cannot be run.
#[derive(Clone, Debug)]
pub struct NativeDraft {
    draft: Draft,
}

impl NativeDraft {
    /// The code of a converted classic program.
    pub fn from_classic(program: Converted, options: impl Into<CodeOptions>) -> NativeDraft {
        let options = options.into().compiler();
        NativeDraft {
            draft: Draft::of(
                &ClassicFilter::from_converted(program).into_code(),
                &options,
            ),
        }
    }

    /// The code of eBPF instructions.
    ///
    /// # Errors
    /// The structure of the program is malformed.
    pub fn from_insns(
        insns: Vec<Insn>,
        options: impl Into<CodeOptions>,
    ) -> Result<NativeDraft, Malformed> {
        let draft = Draft::from_insns(insns, &options.into().compiler())?;
        Ok(NativeDraft { draft })
    }

    /// The code of a linked program before it is loaded, when maps, variables and kernel
    /// functions have no addresses yet: a placeholder stands for each, and a helper for
    /// each kernel function but the bit operations that `kernel` has.
    ///
    /// # Errors
    /// As [`NativeDraft::from_insns`].
    pub fn from_linked(
        insns: &[RawInsn],
        kernel: &Kernel,
        options: impl Into<CodeOptions>,
    ) -> Result<NativeDraft, Malformed> {
        let insns = decode(insns).into_iter();
        let insns = insns.map(|insn| match KernelFunction::from_insn(kernel, &insn) {
            Some(function @ KernelFunction::Bits(_)) => function.resolved(insn),
            _ => with_placeholder(insn),
        });
        NativeDraft::from_insns(insns.collect(), options)
    }

    /// The machine code, followed by its tables.
    pub fn bytes(&self) -> &[u8] {
        self.draft.bytes()
    }

    /// Offset of the program's entry.
    pub fn entry(&self) -> usize {
        self.draft.entry()
    }

    /// Pieces of the code in ascending order, each with the slot of the instruction that it
    /// comes from; without one, a piece begins or ends a function.
    pub fn pieces(&self) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
        self.draft.map()
    }
}

/// The address that native code calls for a helper; `None` if no function of this process
/// implements it for unverified programs.
pub fn helper_address(number: i32) -> Option<u64> {
    vm::find_call(number).map(|call| call as *const () as u64)
}

/// A placeholder address.
const PLACEHOLDER: u64 = 0xffff_8880_0000_0000;

fn with_placeholder(insn: Insn) -> Insn {
    match insn {
        Insn::LoadImm64 {
            imm: Imm64::Value(_),
            ..
        } => insn,
        Insn::LoadImm64 { dst, .. } => Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(Value64::new(PLACEHOLDER)),
        },
        Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) => {
            Insn::Call(Callee::Helper(calls::KTIME_GET_NS))
        }
        _ => insn,
    }
}
