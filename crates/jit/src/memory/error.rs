//! Why there is no executable memory.

use std::fmt;
use std::io;

use super::LARGEST_IMAGE;

/// Why there is no executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// No image can be that large.
    TooLarge {
        /// The bytes that were asked for.
        size: usize,
    },
    /// The alignment is no power of two or more than a page.
    BadAlignment {
        /// The alignment that was asked for.
        align: usize,
    },
    /// The system refused.
    Refused {
        /// What was asked of it.
        call: &'static str,
        /// Its word for why.
        errno: i32,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MemoryError::TooLarge { size } => write!(
                f,
                "{size} bytes of code are more than the largest image, {LARGEST_IMAGE}"
            ),
            MemoryError::BadAlignment { align } => write!(
                f,
                "code can't be aligned to {align}: only to powers of two up to a page"
            ),
            MemoryError::Refused { call, errno } => write!(
                f,
                "the system gives no executable memory: {call}: {}",
                io::Error::from_raw_os_error(errno)
            ),
        }
    }
}

impl std::error::Error for MemoryError {}
