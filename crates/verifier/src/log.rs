//! The log: the kernel's text, written only if it is requested.
//!
//! A verification that is not logged pays one comparison for each place that could
//! write.
//!
//! | file | contents |
//! |---|---|
//! | `insn` | instructions, source lines |
//! | `reg` | registers, types, numbers |
//! | `state` | states after an instruction and at branches |
//! | `lists` | sets of registers and slots |
//! | `statistics` | the last lines |
//! | `output` | receivers of the text |
//!
//! Text goes to a [`LogOutput`] in pieces while it is written, so that a log takes no memory
//! that grows with it.
//!
//! [`verbose!`](crate::verbose) formats nothing while the level is 0.
//! `refuse!` writes the final line and makes the refusal of it.

mod insn;
mod lists;
mod output;
mod reg;
mod state;
mod statistics;

use std::fmt;

use crate::diagnosis::{Access, Noted};
use crate::reason::Trace;
use crate::rejection::Rejection;
use crate::state::State;
use crate::verdict::{Refusal, Stop};
use crate::walk::WalkRecorder;
use spec::behaviour::{Behaviour, Behaviours};

pub(crate) use insn::{insn_text, verbose_insn, verbose_linfo};
pub(crate) use lists::SlotList;
pub use output::{LogOutput, LogTail};
pub use reg::TypeText;
pub(crate) use reg::{BitsText, write_reg};
pub(crate) use state::print_checkpoint;
pub(crate) use state::{print_insn_state, print_verifier_state, slot_text, write_references};
pub(crate) use statistics::print_statistics;

/// The log level of statistics.
const STATISTICS: u32 = 4;

/// Bytes of text that wait for the output.
const PIECE: usize = 1 << 16;

/// Log of one verification.
#[derive(Default)]
pub struct Sink<'l> {
    level: u32,
    /// Text that is not in the output.
    text: String,
    /// Bytes in the output.
    written: usize,
    output: Option<&'l mut dyn LogOutput>,
    /// The instruction that is checked, which refusals name.
    pub insn_idx: u32,
    /// Registers written since the state was printed, one bit each.
    pub scratched_regs: u32,
    /// Slots written since the state was printed, one bit each.
    pub scratched_slots: u64,
    /// Index of the line info record printed last.
    line_info: Option<u32>,
    /// Length of the log after the instruction printed last.
    insn_end: usize,
    /// Bytes of the line of the instruction printed last.
    insn_width: usize,
    /// The current path, if an explanation is requested.
    trace: Option<Box<Trace>>,
    /// The steps of the walk, if they are requested.
    pub(crate) walk: Option<Box<WalkRecorder>>,
    /// What the words of refusals are chosen by.
    pub rules: Behaviours,
    /// The rejections in the log that the kernel may report.
    noted: Vec<Noted>,
    /// The access that is refused next.
    access: Option<Access>,
    /// Bytes of the deepest stack of a chain of calls.
    pub(crate) deepest_stack: u32,
}

impl<'l> Sink<'l> {
    /// An empty log of the kernel's `log_level` bits, which keeps its text.
    pub fn new(level: u32) -> Sink<'l> {
        Sink {
            level,
            ..Sink::default()
        }
    }

    /// An empty log of the kernel's `log_level` bits, whose text goes to an output.
    pub fn to_output(level: u32, output: &'l mut dyn LogOutput) -> Sink<'l> {
        Sink {
            output: Some(output),
            ..Sink::new(level)
        }
    }

    /// An empty log that keeps what the instruction at hand writes, and records the path.
    pub fn tracing() -> Sink<'l> {
        Sink {
            trace: Some(Box::default()),
            ..Sink::new(STATISTICS)
        }
    }

    /// True if every instruction of the walk is logged or recorded.
    #[inline]
    pub fn observes(&self) -> bool {
        self.level & 3 != 0 || self.trace.is_some() || self.walk.is_some()
    }

    /// Records that the walk stands at the instruction of `state`, and drops what the
    /// instruction before it wrote.
    pub fn record(&mut self, state: &State) {
        if let Some(trace) = &mut self.trace {
            self.text.clear();
            trace.push(state);
        }
    }

    /// Steps recorded.
    pub fn traced(&self) -> usize {
        self.trace.as_ref().map_or(0, |trace| trace.len())
    }

    /// Drops the steps behind the first `steps`, where another path branches off.
    pub fn rewind_trace(&mut self, steps: usize) {
        if let Some(trace) = &mut self.trace {
            trace.truncate(steps);
        }
    }

    /// Records the instruction that the walk stands at, if a refusal before its check ended
    /// the path; `loops` if it is the refusal of a loop.
    pub fn end_trace(&mut self, state: &State, loops: bool) {
        if let Some(trace) = &mut self.trace {
            trace.end(state, loops);
        }
    }

    /// The recorded path and what the last instruction wrote.
    pub(crate) fn take_trace(&mut self) -> Option<(Trace, String)> {
        let trace = self.trace.take()?;
        Some((*trace, std::mem::take(&mut self.text)))
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

    /// True if the statistics are by function.
    #[inline]
    pub(crate) fn counts_by_function(&self) -> bool {
        self.level & STATISTICS != 0 && self.output.is_some() && self.rules.has(Behaviour::Reports)
    }

    /// True if the statistics have instructions of functions.
    #[inline]
    pub(crate) fn counts_functions(&self) -> bool {
        let is_asked = self.level & STATISTICS != 0 && self.output.is_some();
        is_asked && self.rules.has(Behaviour::DeepestShown)
    }

    /// True if every instruction of every path is logged (level 2).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.level & 2 != 0
    }

    /// Appends text (`bpf_verifier_vlog`).
    #[doc(alias = "bpf_verifier_vlog")]
    pub fn write(&mut self, text: fmt::Arguments<'_>) {
        use fmt::Write as _;
        // Writing to a String does not fail.
        let _ = self.text.write_fmt(text);
        if self.text.len() > PIECE {
            self.hand_out();
        }
    }

    /// Writes the words of a rejection and a line feed, nothing if there are none, as the kernel
    /// refuses some programs without a word.
    pub(crate) fn refuse(&mut self, rejection: impl Into<Rejection>) -> Stop {
        let mut rejection = rejection.into();
        rejection.adapt(self.rules);
        if self.is_on() {
            let before = self.text.len();
            self.write(format_args!("{}", rejection.words(self.rules)));
            if self.text.len() != before {
                self.write(format_args!("\n"));
            }
        }
        let access = self.access.take();
        if self.walks() && self.rules.has(Behaviour::Reports) {
            self.noted.push(Noted {
                position: self.position(),
                rejection: rejection.clone(),
                insn: self.insn_idx,
                access,
            });
        }
        let mut refusal = Refusal::new(rejection, Some(self.insn_idx));
        refusal.adapt(self.rules);
        Stop::Refused(Box::new(refusal))
    }

    /// The log at an instruction.
    pub(crate) fn at(&mut self, insn_idx: u32) -> &mut Self {
        self.insn_idx = insn_idx;
        self
    }

    /// Notes the access that is refused next.
    pub(crate) fn note_access(&mut self, access: Access) {
        self.access = Some(access);
    }

    /// The rejections in the log that the kernel may report.
    pub(crate) fn take_noted(&mut self) -> Vec<Noted> {
        std::mem::take(&mut self.noted)
    }

    /// Puts texts where they belong in the log; the positions are in order.
    pub(crate) fn insert(&mut self, texts: &[(usize, String)]) {
        for (position, text) in texts.iter().rev() {
            if let Some(at) = position.checked_sub(self.written) {
                self.text.insert_str(at, text);
            }
        }
    }

    /// Hands text to the output, but for the newline at its end: the state behind an
    /// instruction replaces it.
    fn hand_out(&mut self) {
        let Some(output) = &mut self.output else {
            return;
        };
        let rest = match self.text.ends_with('\n') {
            true => "\n",
            false => "",
        };
        let piece = self.text.len() - rest.len();
        output.write(&self.text[..piece]);
        self.written += piece;
        self.text.clear();
        self.text.push_str(rest);
    }

    /// Hands all text to the output (`bpf_vlog_finalize`).
    #[doc(alias = "bpf_vlog_finalize")]
    pub fn finish(mut self) {
        if let Some(output) = &mut self.output {
            output.write(&self.text);
        }
    }

    /// Bytes written.
    pub fn position(&self) -> usize {
        self.written + self.text.len()
    }

    /// Drops what was written since `position` (the kernel's `bpf_vlog_reset`).
    #[doc(alias = "bpf_vlog_reset")]
    pub fn reset(&mut self, position: usize) {
        self.noted.retain(|noted| noted.position <= position);
        if let Some(len) = position.checked_sub(self.written) {
            return self.text.truncate(len);
        }
        self.text.clear();
        self.written = position;
        if let Some(output) = &mut self.output {
            output.truncate(position as u64);
        }
    }

    /// Forgets which source line was printed last, at the start of a function that is
    /// verified on its own.
    pub fn reset_line_info(&mut self) {
        self.line_info = None;
    }

    /// True if a register or slot was written since the state was printed
    /// (`verifier_state_scratched`).
    #[doc(alias = "verifier_state_scratched")]
    #[inline]
    pub fn is_scratched(&self) -> bool {
        self.scratched_regs != 0 || self.scratched_slots != 0
    }

    /// Marks every register and slot as written (`mark_verifier_state_scratched`).
    #[doc(alias = "mark_verifier_state_scratched")]
    pub fn mark_all_scratched(&mut self) {
        self.scratched_regs = !0;
        self.scratched_slots = !0;
    }

    /// The text that is not in an output.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Writes to a log as `write!` does; formats nothing when the log is off (`bpf_log`, `bpf_verifier_log_write`).
#[doc(alias = "bpf_log")]
#[doc(alias = "bpf_verifier_log_write")]
#[macro_export]
macro_rules! verbose {
    ($sink:expr, $($text:tt)*) => {
        if $sink.is_on() {
            $sink.write(format_args!($($text)*));
        }
    };
}

/// A [`Stop`] that refuses the program: `refuse!(env => Mem::NotMemory { reg, kind })`.
/// Fields are converted to their types. Writes the kernel's words to the log.
macro_rules! refuse {
    ($log:expr => $part:ident::$row:ident $({ $($field:ident $(: $value:expr)?),* $(,)? })?) => {{
        let rejection = $crate::rejection::$part::$row $({
            $($field: $crate::rejection::Fill::fill($crate::refuse!(@$field $(, $value)?))),*
        })?;
        $log.refuse(rejection)
    }};
    (@$field:ident) => { $field };
    (@$field:ident, $value:expr) => { $value };
}
pub(crate) use refuse;

/// Refuses the program if a condition holds, from the function that it stands in:
/// `refuse_if!(off < 0, env => Mem::NegativeOffset { kind, reg, off })`.
macro_rules! refuse_if {
    ($condition:expr, $log:expr => $($rejection:tt)*) => {
        if $condition {
            return Err($crate::log::refuse!($log => $($rejection)*));
        }
    };
}
pub(crate) use refuse_if;
