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
            $(
                $(#[$doc])*
                #[doc = concat!("Number ", $number, ".")]
                pub const $name: Errno = Errno($number);
            )*

            /// Its name in C, if it is one of those above.
            pub const fn name(self) -> Option<&'static str> {
                Some(match self.0 {
                    $($number => stringify!($name),)*
                    _ => return None,
                })
            }

            /// The number of a name in C, those with two names by both.
            pub fn from_name(name: &str) -> Option<Errno> {
                Some(match name {
                    $(stringify!($name) => Errno::$name,)*
                    "EWOULDBLOCK" => Errno::EAGAIN,
                    "EDEADLOCK" => Errno::EDEADLK,
                    _ => return None,
                })
            }
        }
    };
}

impl Errno {
    /// Largest error number that a function returns negated (`MAX_ERRNO`).
    #[doc(hidden)]
    pub const MAX: i32 = 4095;

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
    EINTR = 4;
    EIO = 5;
    ENXIO = 6;
    /// Argument list too long; a full map or a size beyond the limit.
    E2BIG = 7;
    ENOEXEC = 8;
    /// Bad file descriptor.
    EBADF = 9;
    ECHILD = 10;
    /// Resource temporarily unavailable.
    EAGAIN = 11;
    /// Out of memory.
    ENOMEM = 12;
    /// Permission denied.
    EACCES = 13;
    /// Bad address.
    EFAULT = 14;
    ENOTBLK = 15;
    /// Resource busy.
    EBUSY = 16;
    /// Entry exists.
    EEXIST = 17;
    EXDEV = 18;
    /// No such device.
    ENODEV = 19;
    ENOTDIR = 20;
    EISDIR = 21;
    /// Invalid argument.
    EINVAL = 22;
    ENFILE = 23;
    /// Too many open files.
    EMFILE = 24;
    ENOTTY = 25;
    ETXTBSY = 26;
    EFBIG = 27;
    /// No space left.
    ENOSPC = 28;
    ESPIPE = 29;
    EROFS = 30;
    EMLINK = 31;
    EPIPE = 32;
    EDOM = 33;
    /// Result out of range.
    ERANGE = 34;
    /// A lock or timer that the caller itself holds or runs.
    EDEADLK = 35;
    /// File name too long.
    ENAMETOOLONG = 36;
    ENOLCK = 37;
    ENOSYS = 38;
    ENOTEMPTY = 39;
    ELOOP = 40;
    ENOMSG = 42;
    EIDRM = 43;
    ECHRNG = 44;
    EL2NSYNC = 45;
    EL3HLT = 46;
    EL3RST = 47;
    ELNRNG = 48;
    EUNATCH = 49;
    ENOCSI = 50;
    EL2HLT = 51;
    EBADE = 52;
    EBADR = 53;
    EXFULL = 54;
    ENOANO = 55;
    EBADRQC = 56;
    EBADSLT = 57;
    EBFONT = 59;
    ENOSTR = 60;
    ENODATA = 61;
    ETIME = 62;
    ENOSR = 63;
    /// Machine is not on the network; no such network namespace.
    ENONET = 64;
    ENOPKG = 65;
    EREMOTE = 66;
    ENOLINK = 67;
    EADV = 68;
    ESRMNT = 69;
    ECOMM = 70;
    /// Protocol error.
    EPROTO = 71;
    EMULTIHOP = 72;
    EDOTDOT = 73;
    /// Bad message.
    EBADMSG = 74;
    /// Value too large.
    EOVERFLOW = 75;
    ENOTUNIQ = 76;
    EBADFD = 77;
    EREMCHG = 78;
    ELIBACC = 79;
    ELIBBAD = 80;
    ELIBSCN = 81;
    ELIBMAX = 82;
    ELIBEXEC = 83;
    EILSEQ = 84;
    ERESTART = 85;
    ESTRPIPE = 86;
    EUSERS = 87;
    /// Socket operation on something else.
    ENOTSOCK = 88;
    EDESTADDRREQ = 89;
    EMSGSIZE = 90;
    /// Protocol of another type.
    EPROTOTYPE = 91;
    ENOPROTOOPT = 92;
    /// Protocol not supported.
    EPROTONOSUPPORT = 93;
    /// Socket type not supported.
    ESOCKTNOSUPPORT = 94;
    /// Operation not supported.
    EOPNOTSUPP = 95;
    EPFNOSUPPORT = 96;
    /// Address family not supported.
    EAFNOSUPPORT = 97;
    EADDRINUSE = 98;
    EADDRNOTAVAIL = 99;
    ENETDOWN = 100;
    /// Network is unreachable.
    ENETUNREACH = 101;
    ENETRESET = 102;
    ECONNABORTED = 103;
    ECONNRESET = 104;
    ENOBUFS = 105;
    EISCONN = 106;
    ENOTCONN = 107;
    ESHUTDOWN = 108;
    ETOOMANYREFS = 109;
    /// Timed out.
    ETIMEDOUT = 110;
    ECONNREFUSED = 111;
    EHOSTDOWN = 112;
    /// Host is unreachable.
    EHOSTUNREACH = 113;
    /// Operation already in progress.
    EALREADY = 114;
    EINPROGRESS = 115;
    ESTALE = 116;
    EUCLEAN = 117;
    ENOTNAM = 118;
    ENAVAIL = 119;
    EISNAM = 120;
    EREMOTEIO = 121;
    EDQUOT = 122;
    ENOMEDIUM = 123;
    EMEDIUMTYPE = 124;
    ECANCELED = 125;
    ENOKEY = 126;
    EKEYEXPIRED = 127;
    EKEYREVOKED = 128;
    EKEYREJECTED = 129;
    EOWNERDEAD = 130;
    ENOTRECOVERABLE = 131;
    ERFKILL = 132;
    EHWPOISON = 133;
    ERESTARTSYS = 512;
    ERESTARTNOINTR = 513;
    ERESTARTNOHAND = 514;
    ENOIOCTLCMD = 515;
    ERESTART_RESTARTBLOCK = 516;
    EPROBE_DEFER = 517;
    EOPENSTALE = 518;
    ENOPARAM = 519;
    EBADHANDLE = 521;
    ENOTSYNC = 522;
    EBADCOOKIE = 523;
    /// Operation not supported; internal to the kernel, but returned by bpf(2).
    ENOTSUPP = 524;
    ETOOSMALL = 525;
    ESERVERFAULT = 526;
    EBADTYPE = 527;
    EJUKEBOX = 528;
    EIOCBQUEUED = 529;
    ERECALLCONFLICT = 530;
    ENOGRACE = 531;
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
