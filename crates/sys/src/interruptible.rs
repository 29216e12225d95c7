//! Streams whose reading signals end, in place of the process.
//!
//! While a stream is read, those of SIGHUP, SIGINT and SIGTERM that are not ignored are blocked and
//! waited for together with its bytes. The first that arrives ends the reading: what the stream holds by then is still read,
//! what is written to it later is not. The process goes on, and ends by the signal when it is done
//! ([`Interruption::received`]).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Errno;
use crate::signals::{Signal, Signals, Wakeup};

/// Whether signals end the reading of streams, and the one that did. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interruption(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_armed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Streams that are being read.
    streams: usize,
    /// The blocked signals, while there are any.
    signals: Option<Arc<Signals>>,
    received: Option<Signal>,
}

impl Interruption {
    /// Has signals end the reading of the streams from now on. Before, they do what they do to the
    /// process.
    pub fn arm(&self) {
        self.0.is_armed.store(true, Ordering::Relaxed);
    }

    /// The signal that ended the reading.
    pub fn received(&self) -> Option<Signal> {
        self.state().received
    }

    fn is_armed(&self) -> bool {
        self.0.is_armed.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose reading signals end once that is armed. It is read and dropped by one thread.
#[derive(Debug)]
pub struct Interruptible {
    file: File,
    interruption: Interruption,
    /// True from the first read with armed signals to the end of the stream.
    is_watched: bool,
    /// Bytes that are still read after a signal.
    left: Option<usize>,
}

impl Interruptible {
    /// The stream of a file.
    pub fn new(file: File, interruption: &Interruption) -> Interruptible {
        Interruptible {
            file,
            interruption: interruption.clone(),
            is_watched: false,
            left: None,
        }
    }

    /// The blocked signals, from the first call on.
    fn watch(&mut self) -> io::Result<Arc<Signals>> {
        let mut state = self.interruption.state();
        let signals = match &state.signals {
            Some(signals) => Arc::clone(signals),
            None => Arc::new(Signals::block_heeded().map_err(error)?),
        };
        state.signals = Some(Arc::clone(&signals));
        if !self.is_watched {
            state.streams += 1;
            self.is_watched = true;
        }
        Ok(signals)
    }

    /// Lets signals do to the process what they do, unless another stream is still read.
    fn unwatch(&mut self) {
        if std::mem::take(&mut self.is_watched) {
            let mut state = self.interruption.state();
            state.streams -= 1;
            if state.streams == 0 {
                state.signals = None;
            }
        }
    }

    /// Waits for bytes or the end of the stream; the bytes that are left to read if a signal
    /// arrived.
    fn wait(&mut self) -> io::Result<Option<usize>> {
        if self.left.is_some() {
            return Ok(self.left);
        }
        let signals = self.watch()?;
        while self.interruption.received().is_none() {
            let woken = signals.wait(&[self.file.as_fd()], Duration::MAX);
            match woken.map_err(error)? {
                Some(Wakeup::Readable(_)) => return Ok(None),
                Some(Wakeup::Signal(signal)) => {
                    self.interruption.state().received = Some(signal);
                }
                None => {}
            }
        }
        self.left = Some(waiting(&self.file)?);
        Ok(self.left)
    }
}

impl Read for Interruptible {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.interruption.is_armed() || into.is_empty() {
            return self.file.read(into);
        }
        let most = match self.wait()? {
            Some(0) => return Err(io::Error::other("a signal ended the reading")),
            Some(left) => left.min(into.len()),
            None => into.len(),
        };
        let read = self.file.read(&mut into[..most])?;
        match &mut self.left {
            Some(left) if read > 0 => *left -= read,
            Some(left) => *left = 0,
            None if read == 0 => self.unwatch(),
            None => {}
        }
        Ok(read)
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        self.unwatch();
    }
}

/// Bytes that can be read at once.
fn waiting(file: &File) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one integer, to a local.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    match Errno::check(done) {
        Ok(_) => Ok(usize::try_from(bytes).unwrap_or(0)),
        // Devices that do not tell.
        Err(Errno(libc::ENOTTY | libc::EINVAL)) => Ok(0),
        Err(errno) => Err(error(errno)),
    }
}

fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_signal_ends_the_reading_of_what_came_before_it() {
        let (reader, mut writer) = io::pipe().unwrap();
        let interruption = Interruption::default();
        let mut stream = Interruptible::new(File::from(OwnedFd::from(reader)), &interruption);
        let mut bytes = [0; 4];
        writer.write_all(b"ab").unwrap();
        assert_eq!(stream.read(&mut bytes).unwrap(), 2);
        assert!(!stream.is_watched);

        interruption.arm();
        writer.write_all(b"cdefgh").unwrap();
        assert_eq!(stream.read(&mut bytes).unwrap(), 4);
        assert!(stream.is_watched && interruption.received().is_none());
        // Blocked in this thread by now, so that it waits for it.
        let signal = Signal::Terminate;
        // SAFETY: the call sends a signal to the calling thread, which has it blocked.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
        assert_eq!(stream.read(&mut bytes).unwrap(), 2);
        writer.write_all(b"later").unwrap();
        assert!(stream.read(&mut bytes).is_err());
        assert_eq!(interruption.received(), Some(signal));
        drop(stream);
        assert!(interruption.state().signals.is_none());
    }

    #[test]
    fn signals_are_free_again_at_the_end_of_the_last_stream() {
        let interruption = Interruption::default();
        interruption.arm();
        let [mut one, mut other] = [b"1", b"2"].map(|text| {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(text).unwrap();
            Interruptible::new(File::from(OwnedFd::from(reader)), &interruption)
        });
        let mut bytes = [0; 4];
        for stream in [&mut one, &mut other] {
            assert_eq!(stream.read(&mut bytes).unwrap(), 1);
        }
        assert_eq!(one.read(&mut bytes).unwrap(), 0);
        assert!(interruption.state().signals.is_some());
        assert_eq!(other.read(&mut bytes).unwrap(), 0);
        assert!(interruption.state().signals.is_none());
    }
}
