//! Signals that a thread waits for.

use crate::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Signals that are not delivered to the process while this exists, but waited for.
#[derive(Debug)]
pub struct Signals {
    /// A signalfd of them.
    pending: OwnedFd,
    before: libc::sigset_t,
}

/// Event that a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// A signal.
    Signal(Signal),
    /// The descriptor of this index can be read, or a connection accepted from it.
    Readable(usize),
}

/// A signal that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP.
    HangUp,
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    const ALL: [Signal; 3] = [Signal::HangUp, Signal::Interrupt, Signal::Terminate];

    fn number(self) -> libc::c_int {
        match self {
            Signal::HangUp => libc::SIGHUP,
            Signal::Interrupt => libc::SIGINT,
            Signal::Terminate => libc::SIGTERM,
        }
    }

    fn is_ignored(self) -> bool {
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: a null pointer asks for the present action, which is written to a local.
        let read = unsafe { libc::sigaction(self.number(), std::ptr::null(), &mut action) };
        read == 0 && action.sa_sigaction == libc::SIG_IGN
    }

    /// Does to the process what the signal does when it arrives, which by default ends it.
    pub fn raise(self) {
        // SAFETY: the call takes a number, and accesses no memory of this process.
        unsafe { libc::raise(self.number()) };
    }
}

impl Signals {
    /// Blocks SIGHUP, SIGINT and SIGTERM in the calling thread and in those that it starts.
    pub fn block() -> Result<Signals, Errno> {
        Signals::block_those(&Signal::ALL)
    }

    /// Blocks those of the signals that are not ignored: blocked ones arrive though they are
    /// ignored.
    pub fn block_heeded() -> Result<Signals, Errno> {
        let heeded = Signal::ALL
            .into_iter()
            .filter(|signal| !signal.is_ignored());
        Signals::block_those(&heeded.collect::<Vec<_>>())
    }

    fn block_those(signals: &[Signal]) -> Result<Signals, Errno> {
        // SAFETY: all zeros is a valid value of both sets, which sigemptyset initializes.
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            (set, set)
        };
        for signal in signals {
            // SAFETY: the set is initialized and writable.
            Errno::check(unsafe { libc::sigaddset(&mut set, signal.number()) })?;
        }
        // SAFETY: both sets are initialized, the second one is writable.
        let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) };
        if error != 0 {
            return Err(Errno(error));
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialized, and the kernel only reads it.
        let fd = Errno::check(unsafe { libc::signalfd(-1, &set, flags) })?;
        Ok(Signals {
            // SAFETY: signalfd just made the descriptor, and nothing else owns it.
            pending: unsafe { OwnedFd::from_raw_fd(fd) },
            before,
        })
    }

    /// The next signal, or that one of `others` is readable; `None` if there is neither for so
    /// long. Signals come first, then the others in their order.
    pub fn wait(
        &self,
        others: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Option<Wakeup>, Errno> {
        let entry = |fd: libc::c_int| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut entries = vec![entry(self.pending.as_raw_fd())];
        entries.extend(others.iter().map(|other| entry(other.as_raw_fd())));
        let count = entries.len() as libc::nfds_t;
        // Rounded up, so that the time has passed when this returns.
        let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
        let milliseconds = libc::c_int::try_from(milliseconds).unwrap_or(libc::c_int::MAX);
        // SAFETY: pointer and length are those of a writable array.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), count, milliseconds) };
        match Errno::check(ready) {
            Ok(_) => {}
            Err(Errno(libc::EINTR)) => return Ok(None),
            Err(errno) => return Err(errno),
        }
        if let Some(signal) = self.pending()? {
            return Ok(Some(Wakeup::Signal(signal)));
        }
        let mut others = entries[1..].iter();
        Ok(others.position(|it| it.revents != 0).map(Wakeup::Readable))
    }

    /// The next signal that is pending.
    fn pending(&self) -> Result<Option<Signal>, Errno> {
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = std::mem::size_of_val(&info);
        let fd = self.pending.as_raw_fd();
        // SAFETY: pointer and size are those of a writable local.
        let len = unsafe { libc::read(fd, (&raw mut info).cast(), size) };
        let is_it = |signal: &Signal| signal.number() as u32 == info.ssi_signo;
        match Errno::check_len(len) {
            Ok(_) => Ok(Signal::ALL.into_iter().find(is_it)),
            Err(Errno(libc::EAGAIN | libc::EINTR)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
