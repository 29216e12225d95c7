//! How far a campaign is, while it runs.

use std::io::{self, IsTerminal, Write};

use beebox::internal::fuzz::FuzzProgress;

/// A line on standard error that says how far it is, if that is a terminal; removed in the end.
#[derive(Default)]
pub(super) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(super) fn show(&mut self, at: FuzzProgress) {
        if !io::stderr().is_terminal() {
            return;
        }
        self.is_shown = true;
        let seconds = at.time.as_secs_f64();
        let each = at.runs as f64 / seconds.max(1e-9);
        // A terminal that is gone is no reason to end.
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{} runs, {each:.0} a second, {} inputs kept, {} of {} counters, {} found",
            at.runs,
            at.kept,
            at.covered.0,
            at.covered.1,
            at.finds
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
