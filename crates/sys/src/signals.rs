//! Signals that a thread waits for.

use crate::Errno;
use std::time::Duration;

/// Signals that are not delivered to the process while this exists, but waited for.
#[derive(Debug)]
pub struct Signals {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

/// A signal that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP.
    HangUp,
    /// SIGINT or SIGTERM.
    Stop,
}

const WAITED: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

impl Signals {
    /// Blocks SIGHUP, SIGINT and SIGTERM in the calling thread and in those that it starts.
    pub fn block() -> Result<Signals, Errno> {
        // SAFETY: all zeros is a valid value of both sets, which sigemptyset initializes.
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            (set, set)
        };
        for signal in WAITED {
            // SAFETY: the set is initialized and writable.
            Errno::check(unsafe { libc::sigaddset(&mut set, signal) })?;
        }
        // SAFETY: both sets are initialized, the second one is writable.
        let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) };
        match error {
            0 => Ok(Signals { set, before }),
            error => Err(Errno(error)),
        }
    }

    /// The next signal; `None` if there is none for so long.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Signal>, Errno> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the set and the time are initialized; no information is asked for.
        let signal = unsafe { libc::sigtimedwait(&self.set, std::ptr::null_mut(), &timeout) };
        match Errno::check(signal) {
            Ok(libc::SIGHUP) => Ok(Some(Signal::HangUp)),
            Ok(_) => Ok(Some(Signal::Stop)),
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
