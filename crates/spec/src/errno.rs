//! Error numbers of Linux (`include/uapi/asm-generic/errno*.h`, `include/linux/errno.h`).

use std::fmt;

/// An error number, positive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

/// What fails with an error number.
pub type Result<T = (), E = Errno> = std::result::Result<T, E>;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno($number);)*

            /// Its name in C, if it is one of those above.
            pub const fn name(self) -> Option<&'static str> {
                Some(match self.0 {
                    $($number => stringify!($name),)*
                    _ => return None,
                })
            }
        }
    };
}

impl Errno {
    /// Fails with this number if a condition holds.
    ///
    /// # Errors
    /// This number.
    #[inline]
    pub fn when(self, fails: bool) -> Result {
        match fails {
            true => Err(self),
            false => Ok(()),
        }
    }
}

numbers! {
    /// Operation not permitted.
    EPERM = 1;
    /// No such entry.
    ENOENT = 2;
    /// No such process; a symbol or type that is not found.
    ESRCH = 3;
    /// Argument list too long; a full map or a size beyond the limit.
    E2BIG = 7;
    /// Bad file descriptor.
    EBADF = 9;
    /// Resource temporarily unavailable.
    EAGAIN = 11;
    /// Out of memory.
    ENOMEM = 12;
    /// Permission denied.
    EACCES = 13;
    /// Bad address.
    EFAULT = 14;
    /// Resource busy.
    EBUSY = 16;
    /// Entry exists.
    EEXIST = 17;
    /// No such device.
    ENODEV = 19;
    /// Invalid argument.
    EINVAL = 22;
    /// Too many open files.
    EMFILE = 24;
    /// No space left.
    ENOSPC = 28;
    /// Result out of range.
    ERANGE = 34;
    /// A lock or timer that the caller itself holds or runs.
    EDEADLK = 35;
    /// File name too long.
    ENAMETOOLONG = 36;
    /// Machine is not on the network; no such network namespace.
    ENONET = 64;
    /// Protocol error.
    EPROTO = 71;
    /// Bad message.
    EBADMSG = 74;
    /// Value too large.
    EOVERFLOW = 75;
    /// Socket operation on something else.
    ENOTSOCK = 88;
    /// Protocol of another type.
    EPROTOTYPE = 91;
    /// Protocol not supported.
    EPROTONOSUPPORT = 93;
    /// Socket type not supported.
    ESOCKTNOSUPPORT = 94;
    /// Operation not supported.
    EOPNOTSUPP = 95;
    /// Address family not supported.
    EAFNOSUPPORT = 97;
    /// Network is unreachable.
    ENETUNREACH = 101;
    /// Timed out.
    ETIMEDOUT = 110;
    /// Host is unreachable.
    EHOSTUNREACH = 113;
    /// Operation already in progress.
    EALREADY = 114;
    /// Operation not supported; internal to the kernel, but returned by bpf(2).
    ENOTSUPP = 524;
}

impl Errno {
    /// The value that a helper returns for it.
    pub const fn negated(self) -> u64 {
        (self.0 as i64).wrapping_neg() as u64
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errno {}
