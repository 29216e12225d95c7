//! The interface of a processor's code generator.

use lower::LoweredCode;

use crate::{Applied, Optimizations, Options};

/// The code generator. On other processors and systems than x86-64 Linux its code is for
/// inspection only.
pub(crate) use crate::x64::X64 as Host;

/// True if this processor runs the code that is generated, and this system has pages for it.
pub const RUNS_HERE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// A code generator. The rest of the crate does not depend on the processor.
pub(crate) trait Backend {
    /// Code that was generated and has no address yet.
    type Code<'a>: GeneratedCode;

    /// Generates the code of a program and passes it to `then`.
    fn compile<R>(
        &self,
        program: &LoweredCode,
        request: Request,
        then: impl FnOnce(Self::Code<'_>) -> R,
    ) -> R;
}

/// Options of one code generation.
pub(crate) struct Request {
    /// Records the code map that [`GeneratedCode::code_map`] returns.
    pub(crate) map: bool,
    /// Adds deadline checks.
    pub(crate) deadline: bool,
    /// Tail calls may enter the program.
    pub(crate) tail_target: bool,
    /// Indirect branches go through a retpoline.
    pub(crate) retpoline: bool,
    /// Functions begin with a slot.
    pub(crate) entry_slots: bool,
    /// The optimizations to use.
    pub(crate) optimizations: Optimizations,
}

impl Request {
    /// The request for these options.
    pub(crate) fn new(options: &Options) -> Request {
        Request {
            map: options.map,
            deadline: options.deadline,
            tail_target: options.tail_target,
            retpoline: options.retpoline,
            entry_slots: options.entry_slots,
            optimizations: options.optimizations,
        }
    }
}

/// Generated code.
pub(crate) trait GeneratedCode {
    /// Its length in bytes.
    fn len(&self) -> usize;

    /// The offset of the program's entry.
    fn entry(&self) -> usize;

    /// The offset of its entry for tail calls.
    fn tail_entry(&self) -> usize;

    /// The offsets of the slots at the entries of functions, in the order of the functions.
    fn entry_slots(&self) -> &[u32];

    /// True if the code uses the native context.
    fn uses_context(&self) -> bool;

    /// Writes the code into memory of exactly its length, at any address.
    fn write(&self, out: &mut [u8]);

    /// Slot and offset of each piece of the code, in ascending order of offset; slot
    /// `u32::MAX` for pieces that belong to none.
    fn code_map(&self) -> Vec<(u32, u32)>;

    /// Number of times that each optimization was applied.
    fn applied(&self) -> Applied;
}
