//! Error numbers of the system.

use std::fmt;
use std::io;

/// An error number of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted.
    pub const EPERM: Errno = Errno(libc::EPERM);
    /// In use.
    pub const EBUSY: Errno = Errno(libc::EBUSY);
    /// No such system call.
    pub const ENOSYS: Errno = Errno(libc::ENOSYS);

    /// The error number of the last failed call of this thread.
    pub fn last() -> Errno {
        Errno::from(io::Error::last_os_error())
    }

    /// Result of a call that returns -1 on failure.
    #[cfg(target_os = "linux")]
    pub(crate) fn check(answer: libc::c_int) -> Result<libc::c_int, Errno> {
        if answer < 0 {
            Err(Errno::last())
        } else {
            Ok(answer)
        }
    }

    /// Result of a call that returns a count, or -1 on failure.
    #[cfg(target_os = "linux")]
    pub(crate) fn check_len(answer: libc::ssize_t) -> Result<usize, Errno> {
        usize::try_from(answer).map_err(|_| Errno::last())
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for Errno {}
