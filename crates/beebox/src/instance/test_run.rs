//! Options and results of test runs, named as in `bpf_attr.test`.

use std::time::Duration;

use spec::Errno;
use spec::programs::{self, ProgramType};
use vm::Redirect;
use vm::network::Network;

use super::Verdict;
use crate::failure::{Error, RunCause};
use crate::internal::run::{PrintedText, RunClock, RunRecord, TestRunOutput};

/// Options of [`Program::test_run`](super::Program::test_run):
/// `TestRun::packet(&packet).ctx_in(&context).repeat(100)`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TestRun<'d> {
    /// The packet, with its link-layer header; empty for programs without packets.
    pub data_in: &'d [u8],
    /// Most bytes of `data_out`; `None` for all.
    pub data_size_out: Option<usize>,
    /// The context, empty for none.
    pub ctx_in: &'d [u8],
    /// Most bytes of `ctx_out`; `None` for all.
    pub ctx_size_out: Option<usize>,
    /// Number of runs; 0 is 1. Each gets the packet as the one before left it.
    pub repeat: u32,
    /// Flags: 0; for raw tracepoints any, of which Linux looks at `BPF_F_TEST_RUN_ON_CPU` (1).
    pub flags: u32,
    /// The CPU that the program runs on, of every type and without the flag.
    pub cpu: u32,
    /// Packets of a batch of live frames, which are not supported: 0.
    pub batch_size: u32,
    /// The clock of the time helpers.
    pub clock: RunClock,
    /// The network that helpers see in these runs; `None` for that of the
    /// [`Loader`](super::Loader). Maps of sockets hold the loader's.
    pub network: Option<&'d Network>,
    /// Leaves records in ring and perf buffers, as Linux does, in place of taking them.
    #[doc(hidden)]
    pub keep_records: bool,
}

impl Default for TestRun<'_> {
    /// One run without packet and context, on CPU 0 at time 0.
    fn default() -> Self {
        TestRun {
            data_in: &[],
            data_size_out: None,
            ctx_in: &[],
            ctx_size_out: None,
            repeat: 1,
            flags: 0,
            cpu: 0,
            batch_size: 0,
            clock: RunClock::Fixed(0),
            network: None,
            keep_records: false,
        }
    }
}

/// Consuming setters of fields.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $ty:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $ty) -> TestRun<'d> {
            self.$field = $field;
            self
        }
    )*};
}

/// Flags of `bpf_attr.test`.
const LIVE_FRAMES: u32 = 1 << 1;
const CHECKSUM_COMPLETE: u32 = 1 << 2;

impl<'d> TestRun<'d> {
    /// One run on a packet.
    pub fn packet(data_in: &'d [u8]) -> TestRun<'d> {
        TestRun {
            data_in,
            ..TestRun::default()
        }
    }

    /// One run with a context.
    pub fn context(ctx_in: &'d [u8]) -> TestRun<'d> {
        TestRun {
            ctx_in,
            ..TestRun::default()
        }
    }

    setters! {
        /// Sets the packet, with its link-layer header.
        data_in: &'d [u8];
        /// Sets the context.
        ctx_in: &'d [u8];
        /// Sets the number of runs.
        repeat: u32;
        /// Sets the flags.
        flags: u32;
        /// Sets the CPU that the program runs on.
        cpu: u32;
        /// Sets the number of packets of a batch.
        batch_size: u32;
        /// Sets the clock of the time helpers.
        clock: RunClock;
    }

    /// Sets the most bytes of [`TestRunResult::data_out`].
    #[must_use]
    pub fn data_size_out(mut self, bytes: usize) -> TestRun<'d> {
        self.data_size_out = Some(bytes);
        self
    }

    /// Sets the most bytes of [`TestRunResult::ctx_out`].
    #[must_use]
    pub fn ctx_size_out(mut self, bytes: usize) -> TestRun<'d> {
        self.ctx_size_out = Some(bytes);
        self
    }

    /// Sets the network that helpers see.
    #[must_use]
    pub fn network(mut self, network: &'d Network) -> TestRun<'d> {
        self.network = Some(network);
        self
    }

    /// Refuses the flags and batches that Linux refuses, or that are not supported.
    pub(super) fn check(&self, kind: ProgramType) -> Result<(), Error> {
        let unsupported = |option| Err(RunCause::UnsupportedOption(option).into());
        let run = kind.test_run();
        match self.flags {
            0 => {}
            // Of these Linux looks at BPF_F_TEST_RUN_ON_CPU alone.
            _ if run == Some(programs::TestRunKind::RawTracepoint) => {}
            LIVE_FRAMES if run == Some(programs::TestRunKind::Xdp) => {
                return unsupported("flags: BPF_F_TEST_XDP_LIVE_FRAMES");
            }
            CHECKSUM_COMPLETE if matches!(run, Some(programs::TestRunKind::Skb(_))) => {
                return unsupported("flags: BPF_F_TEST_SKB_CHECKSUM_COMPLETE");
            }
            _ => {
                let rule = "flags: not those of programs of this type";
                return Err(RunCause::Option(rule, Errno::EINVAL).into());
            }
        }
        match self.batch_size {
            0 => Ok(()),
            _ => {
                let rule = "batch_size: only live frames have batches";
                Err(RunCause::Option(rule, Errno::EINVAL).into())
            }
        }
    }
}

/// Result of [`Program::test_run`](super::Program::test_run).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestRunResult {
    /// The low 32 bits of `r0` of the last run.
    pub retval: u32,
    /// Its meaning.
    pub verdict: Verdict,
    /// Target to which the last run redirected the packet.
    pub redirect: Option<Redirect>,
    /// The packet after the runs, at most [`TestRun::data_size_out`] bytes.
    pub data_out: Vec<u8>,
    /// Bytes of the packet after the runs.
    pub data_size_out: usize,
    /// The context after the runs, at most [`TestRun::ctx_size_out`] bytes.
    pub ctx_out: Vec<u8>,
    /// Bytes of the context after the runs.
    pub ctx_size_out: usize,
    /// Mean time of a run.
    pub duration: Duration,
    /// Text that the runs printed.
    pub printk: PrintedText,
    /// Records of ring and perf buffers that waited after the runs; they are taken.
    pub records: Vec<RunRecord>,
}

impl TestRunResult {
    pub(super) fn new(kind: ProgramType, run: &TestRun<'_>, output: TestRunOutput) -> Self {
        let cut = |mut bytes: Vec<u8>, most: Option<usize>| {
            let size = bytes.len();
            bytes.truncate(most.unwrap_or(size));
            (bytes, size)
        };
        let (data_out, data_size_out) = cut(output.data_out, run.data_size_out);
        let (ctx_out, ctx_size_out) = cut(output.ctx_out, run.ctx_size_out);
        TestRunResult {
            retval: output.retval,
            verdict: Verdict::new(kind, output.retval),
            redirect: output.redirect,
            data_out,
            data_size_out,
            ctx_out,
            ctx_size_out,
            duration: output.duration,
            printk: output.printk,
            records: output.records,
        }
    }
}
