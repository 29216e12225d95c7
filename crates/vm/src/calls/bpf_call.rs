//! System calls of programs, as helpers make them in the process of a run.

use std::fmt;

use spec::Result;

/// A process with open descriptors.
pub trait SystemCalls: fmt::Debug {
    /// `bpf(2)` with attributes and pointers in the memory of the run: a new descriptor, or 0.
    ///
    /// # Errors
    /// Those of the command.
    fn bpf(&self, call: &mut BpfCall<'_>) -> Result<u32>;

    /// `close(2)`. EBADF if the descriptor is not open.
    fn close(&self, descriptor: u32) -> Result;
}

/// A call of `bpf(2)`.
pub struct BpfCall<'a> {
    /// The command (`enum bpf_cmd`).
    pub command: u32,
    /// The attributes as the program gives them; what the command returns in them is changed.
    pub attributes: &'a mut [u8],
    /// Reads the memory of the run at an address, false if it cannot.
    pub read: &'a dyn Fn(u64, &mut [u8]) -> bool,
}

impl fmt::Debug for BpfCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BpfCall")
            .field("command", &self.command)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}
