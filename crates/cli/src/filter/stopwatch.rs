//! Time that a command spends outside its own work: waiting for input and writing.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A sum of times. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Stopwatch(Arc<AtomicU64>);

impl Stopwatch {
    /// The sum so far.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Adds to the sum.
    pub(super) fn add(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Adds the time that a call takes.
    fn time<R>(&self, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = call();
        self.add(start.elapsed());
        result
    }
}

/// A reader or writer whose calls are timed.
pub(super) struct Timed<T> {
    inner: T,
    stopwatch: Stopwatch,
}

impl<T> Timed<T> {
    pub(super) fn new(inner: T, stopwatch: &Stopwatch) -> Timed<T> {
        Timed {
            inner,
            stopwatch: stopwatch.clone(),
        }
    }
}

impl<T: Read> Read for Timed<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stopwatch.time(|| self.inner.read(into))
    }
}

impl<T: Write> Write for Timed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stopwatch.time(|| self.inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stopwatch.time(|| self.inner.flush())
    }
}
