//! The log: the kernel's text, written only if it is asked for.
//!
//! [`verbose!`](crate::verbose) formats nothing while the level is 0.
//! [`refuse!`](crate::refuse) writes the final line and makes the refusal of it.

use std::fmt;

/// Log of one verification.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    level: u32,
    text: String,
    /// Registers written since the state was printed, one bit each.
    pub scratched_regs: u32,
    /// Slots written since the state was printed, one bit each.
    pub scratched_slots: u64,
}

impl Sink {
    /// An empty log of the kernel's `log_level` bits.
    pub fn new(level: u32) -> Sink {
        Sink {
            level,
            ..Sink::default()
        }
    }

    /// True at any level that writes.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.level != 0
    }

    /// True if the walk is logged (level 1 or 2).
    #[inline]
    pub fn walks(&self) -> bool {
        self.level & 3 != 0
    }

    /// True if every instruction of every path is logged (level 2).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.level & 2 != 0
    }

    /// Appends text.
    pub fn write(&mut self, text: fmt::Arguments<'_>) {
        use fmt::Write as _;
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(text);
    }

    /// Bytes written.
    pub fn position(&self) -> usize {
        self.text.len()
    }

    /// Drops what was written since `position` (the kernel's `bpf_vlog_reset`).
    pub fn reset(&mut self, position: usize) {
        self.text.truncate(position);
    }

    /// The text written.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Writes to the log of a [`Walk`](crate::walk::Walk), or of anything with a field
/// `sink`, as `write!` does; formats nothing when the log is off.
#[macro_export]
macro_rules! verbose {
    ($walk:expr, $($text:tt)*) => {
        if $walk.sink.is_on() {
            $walk.sink.write(format_args!($($text)*));
        }
    };
}

/// A [`Stop`](crate::Stop) that refuses the program: `refuse!(walk, EACCES, Stack,
/// "text {}", value)`. Writes the text and a newline to the log.
#[macro_export]
macro_rules! refuse {
    ($walk:expr, $errno:ident, $kind:ident, $($text:tt)*) => {{
        if $walk.sink.is_on() {
            $walk.sink.write(format_args!($($text)*));
            $walk.sink.write(format_args!("\n"));
        }
        $crate::Stop::refusal(
            $crate::errno::$errno,
            $crate::RefusalKind::$kind,
            Some($walk.insn_idx),
            format_args!($($text)*),
        )
    }};
}
