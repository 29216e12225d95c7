//! What a processor's code generator offers to the rest of the room.

use lower::Lowered;
use spec::SplitMix;

use crate::{Applied, Optimizations};

#[cfg(target_arch = "x86_64")]
pub(crate) use crate::x64::X64 as Host;

/// A code generator. Nothing outside of it knows the processor.
pub(crate) trait Backend {
    /// Code that was generated and has no address yet.
    type Code<'a>: Code;

    /// Generates the code of a whole program, which is there as long as `then` looks
    /// at it.
    fn compile<R>(
        &self,
        program: &Lowered,
        request: Request,
        then: impl FnOnce(Self::Code<'_>) -> R,
    ) -> R;
}

/// What is asked of a code generator beside code.
#[derive(Clone, Default)]
pub(crate) struct Request {
    /// To note what [`Code::places`] tells.
    pub(crate) map: bool,
    /// To look at the run's deadline on the way.
    pub(crate) deadline: bool,
    /// To hide the program's constants, by numbers from here.
    pub(crate) keys: Option<SplitMix>,
    /// The optimizations to use.
    pub(crate) optimizations: Optimizations,
}

/// Generated code.
pub(crate) trait Code {
    /// Bytes.
    fn len(&self) -> usize;

    /// Where the program's first function begins.
    fn entry(&self) -> usize;

    /// Whether it looks at the environment.
    fn wants_env(&self) -> bool;

    /// Writes the code into memory of exactly its length, wherever that lies.
    fn write(&self, out: &mut [u8]);

    /// Where pieces of the code begin, in ascending order, each with its slot, or
    /// `u32::MAX` for what comes from no slot.
    fn places(&self) -> Vec<(u32, u32)>;

    /// How often each optimization was applied.
    fn applied(&self) -> Applied;
}
