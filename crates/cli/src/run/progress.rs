//! The number of packets so far, on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(200);

/// Packets between two looks at the clock.
const PACKETS: u64 = 1024;

/// A line on standard error that counts packets, if that is a terminal; removed in the end.
pub(super) struct Progress {
    is_terminal: bool,
    shown: Option<Instant>,
    started: Instant,
}

impl Progress {
    pub(super) fn start() -> Progress {
        Progress {
            is_terminal: io::stderr().is_terminal(),
            shown: None,
            started: Instant::now(),
        }
    }

    /// Shows the number of packets, now and then.
    pub(super) fn show(&mut self, packets: u64) {
        let last = self.shown.unwrap_or(self.started);
        if self.is_terminal && packets.is_multiple_of(PACKETS) && last.elapsed() >= INTERVAL {
            self.shown = Some(Instant::now());
            // A terminal that is gone is no reason to end the run.
            let _ = write!(io::stderr(), "\r{packets} packets");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
