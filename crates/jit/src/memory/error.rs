//! Errors of executable memory.

use std::fmt;
use std::io;

use super::LARGEST_IMAGE;

/// Errors of executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The image exceeds the largest size.
    TooLarge {
        /// Requested size in bytes.
        size: usize,
    },
    /// The alignment is not a power of two, or exceeds a page.
    BadAlignment {
        /// Requested alignment in bytes.
        align: usize,
    },
    /// The system is not Linux.
    NotLinux,
    /// A system call failed.
    Refused {
        /// Name of the system call.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MemoryError::TooLarge { size } => write!(
                f,
                "native code of {size} bytes: the largest image has {LARGEST_IMAGE}"
            ),
            MemoryError::BadAlignment { align } => write!(
                f,
                "native code with alignment {align}: the alignment must be a power of two up to a page"
            ),
            MemoryError::NotLinux => {
                f.write_str("no executable memory: it is mapped on Linux only")
            }
            MemoryError::Refused { call, errno } => write!(
                f,
                "no executable memory: {call}: {}",
                io::Error::from_raw_os_error(errno)
            ),
        }
    }
}

impl std::error::Error for MemoryError {}
