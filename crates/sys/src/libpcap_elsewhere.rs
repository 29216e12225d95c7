//! libpcap on systems other than Linux, where it is not loaded.

use std::convert::Infallible;

use isa::classic::SockFilter;

pub use crate::compile_error::CompileError;

/// Size of a pcap file header in bytes.
pub const FILE_HEADER: usize = 24;

/// libpcap, of which there is none.
pub struct Libpcap(Infallible);

/// The reason why there is none.
pub struct LibraryError(pub String);

impl Libpcap {
    /// The error that it is loaded on Linux only.
    pub fn load() -> Result<Libpcap, LibraryError> {
        Err(LibraryError("libpcap is loaded on Linux only".into()))
    }

    /// The program of an expression.
    pub fn compile(
        &self,
        _: &[u8; FILE_HEADER],
        _: &str,
        _: bool,
    ) -> Result<Vec<SockFilter>, CompileError> {
        match self.0 {}
    }

    /// The name of a link type.
    pub fn link_type_name(&self, _: &[u8; FILE_HEADER]) -> Result<Option<String>, CompileError> {
        match self.0 {}
    }
}
