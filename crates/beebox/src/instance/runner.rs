//! Runs on packet after packet, without allocation.

use std::borrow::Cow;

use ::kernel::maps::RunGuard;
use spec::programs::ProgramType;
use vm::Redirect;

use super::Verdict;
use crate::failure::Error;
use crate::internal::run::{PrintedText, RunRecord, RunnableProgram};

/// Runs a program on packets of any length, in the memory that it keeps. One thread has one.
///
/// Unlike [`Program::test_run`](super::Program::test_run), it takes no context, and packets may be
/// shorter and longer than Linux's test run takes.
pub struct Runner<'p> {
    program: RunnableProgram<'p>,
    kind: ProgramType,
    takes_records: bool,
}

/// Result of a run on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketResult {
    /// The low 32 bits of `r0`.
    pub retval: u32,
    /// Its meaning.
    pub verdict: Verdict,
    /// Target to which the run redirected the packet.
    pub redirect: Option<Redirect>,
}

impl<'p> Runner<'p> {
    pub(super) fn new(program: RunnableProgram<'p>) -> Runner<'p> {
        Runner {
            kind: program.kind(),
            program,
            takes_records: false,
        }
    }

    /// Runs the program on a packet that begins with its link-layer header. Its time is 0.
    ///
    /// # Errors
    /// If programs of the type get no packets, or the run ends at a limit or a trap.
    pub fn run(&mut self, packet: &[u8]) -> Result<PacketResult, Error> {
        self.run_at(packet, 0)
    }

    /// As [`Runner::run`], at a time in nanoseconds, which helpers report.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run_at(&mut self, packet: &[u8], time: u64) -> Result<PacketResult, Error> {
        // A guard that outlives the run would keep deleted entries of maps.
        self.run_guarded(packet, time, &mut RunGuard::new())
    }

    /// Runs the program on one packet after the other, and calls a function with each result and
    /// the runner as that run left it: the fastest loop.
    ///
    /// # Errors
    /// As [`Runner::run`], for the first packet that fails.
    pub fn run_each<P: AsRef<[u8]>>(
        &mut self,
        packets: impl IntoIterator<Item = P>,
        mut each: impl FnMut(PacketResult, &Runner<'p>),
    ) -> Result<(), Error> {
        let mut guard = RunGuard::new();
        for packet in packets {
            let result = self.run_guarded(packet.as_ref(), 0, &mut guard)?;
            each(result, self);
        }
        Ok(())
    }

    #[inline(always)]
    fn run_guarded(
        &mut self,
        packet: &[u8],
        time: u64,
        guard: &mut RunGuard,
    ) -> Result<PacketResult, Error> {
        let retval = self.program.run_captured(packet, time, guard)?;
        let input = self.program.captured();
        Ok(PacketResult {
            retval,
            verdict: Verdict::new(self.kind, retval),
            redirect: input.and_then(|input| input.redirect(retval)),
        })
    }

    /// The packet as the last run left it, with its link-layer header; empty before the first
    /// run. It is copied only if it has fragments.
    pub fn packet(&self) -> Cow<'_, [u8]> {
        let input = self.program.captured();
        input.map_or(Cow::Borrowed(&[]), |input| input.kept_frame(usize::MAX))
    }

    /// Text that the last run printed.
    pub fn printk(&self) -> &PrintedText {
        self.program.printed()
    }

    /// Takes the records that wait in ring and perf buffers. Buffers whose records are not taken
    /// fill.
    pub fn take_records(&mut self) -> Vec<RunRecord> {
        if !self.takes_records {
            self.program.collect_records(true);
            self.takes_records = true;
        }
        self.program.records()
    }
}
