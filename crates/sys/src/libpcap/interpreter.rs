//! libpcap's interpreter of classic programs (`bpf_filter`), for comparisons.

use std::ffi::{c_int, c_uint};

use isa::classic::SockFilter;

use super::Libpcap;

/// `bpf_validate`: 1 if `bpf_filter` can run the program.
pub(super) type Validate = unsafe extern "C" fn(*const SockFilter, c_int) -> c_int;

/// `bpf_filter`: program, packet, length on the wire, length of the buffer.
pub(super) type Filter =
    unsafe extern "C" fn(*const SockFilter, *const u8, c_uint, c_uint) -> c_uint;

/// A classic program that libpcap validated and can run.
pub struct Interpreter<'l> {
    program: Vec<SockFilter>,
    filter: Filter,
    /// The function lives as long as its library.
    _libpcap: &'l Libpcap,
}

impl Libpcap {
    /// Validates a program for libpcap's interpreter; `None` if `bpf_validate` rejects
    /// it.
    pub fn interpreter(&self, program: Vec<SockFilter>) -> Option<Interpreter<'_>> {
        let len = c_int::try_from(program.len()).ok()?;
        // SAFETY: `len` instructions, laid out as libpcap's `struct bpf_insn`
        // is, start at the pointer; the function only reads them.
        let valid = unsafe { (self.validate)(program.as_ptr(), len) } != 0;
        valid.then_some(Interpreter {
            program,
            filter: self.filter,
            _libpcap: self,
        })
    }
}

impl Interpreter<'_> {
    /// Runs the program on the captured bytes of a packet; returns the number of bytes
    /// to keep, 0 if it drops the packet.
    #[inline]
    pub fn run(&self, data: &[u8], wire_len: u32) -> u32 {
        let captured = c_uint::try_from(data.len()).unwrap_or(c_uint::MAX);
        // SAFETY: the library is loaded (we borrow it) and found the program
        // valid: it stays inside itself and its scratch memory. It bounds every
        // load by `captured`, and that many bytes are readable.
        unsafe { (self.filter)(self.program.as_ptr(), data.as_ptr(), wire_len, captured) }
    }
}
