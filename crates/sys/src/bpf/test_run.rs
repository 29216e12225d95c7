//! BPF_PROG_TEST_RUN.

use super::LoadedProgram;
use super::attributes::{ProgramTestRun, call};
use crate::Errno;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Request to run a program.
#[derive(Clone, Copy, Debug)]
pub struct TestRun<'a> {
    /// Packet; networking types need at least the 14 bytes of an Ethernet header.
    pub data: &'a [u8],
    /// Context, for types that take one; empty for none.
    pub context: &'a [u8],
    /// Number of runs, all on the same data: a run sees what the previous one wrote.
    pub repeat: u32,
    /// Flags (BPF_F_TEST_RUN_ON_CPU, BPF_F_TEST_XDP_LIVE_FRAMES …).
    pub flags: u32,
    /// CPU to run on, with BPF_F_TEST_RUN_ON_CPU.
    pub cpu: u32,
    /// Frames per batch, with BPF_F_TEST_XDP_LIVE_FRAMES.
    pub batch_size: u32,
}

impl<'a> TestRun<'a> {
    /// One run on a context, without a packet.
    pub fn with_context(context: &'a [u8]) -> TestRun<'a> {
        TestRun {
            context,
            ..TestRun::on(&[])
        }
    }

    /// One run on a packet.
    pub fn on(data: &'a [u8]) -> TestRun<'a> {
        TestRun {
            data,
            context: &[],
            repeat: 1,
            flags: 0,
            cpu: 0,
            batch_size: 0,
        }
    }
}

/// Result of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRunResult {
    /// Return value of the last run: the low 32 bits of `r0`.
    pub retval: u32,
    /// Length in bytes of the packet after the run; `data_out` has as much as fits.
    pub data_len: usize,
    /// Length in bytes of the context after the run; `context_out` has as much as fits.
    pub context_len: usize,
    /// Mean time of a run, in whole nanoseconds, with the kernel's fixed cost.
    pub duration: Duration,
}

impl LoadedProgram {
    /// Runs the program; writes the packet and the context after the run.
    ///
    /// Errors are the kernel's: ENOSPC for a non-empty `data_out` that is too short,
    /// EINVAL for a packet that is too short, ENOTSUPP (524) for a program type without
    /// test runs.
    pub fn test_run(
        &self,
        run: &TestRun<'_>,
        data_out: &mut [u8],
        context_out: &mut [u8],
    ) -> Result<TestRunResult, Errno> {
        // Of syscall programs the kernel writes the context back to where it was read.
        self.run_on(run, &mut run.context.to_vec(), data_out, context_out)
    }

    /// Runs a program of type syscall on a context, which the program changes. Errors are the
    /// kernel's.
    pub fn test_run_in_place(&self, context: &mut [u8]) -> Result<TestRunResult, Errno> {
        let run = TestRun {
            repeat: 0,
            ..TestRun::on(&[])
        };
        self.run_on(&run, context, &mut [], &mut [])
    }

    fn run_on(
        &self,
        run: &TestRun<'_>,
        context_in: &mut [u8],
        data_out: &mut [u8],
        context_out: &mut [u8],
    ) -> Result<TestRunResult, Errno> {
        let size = |len: usize| u32::try_from(len).map_err(|_| Errno(libc::E2BIG));
        let address = |bytes: &[u8]| match bytes {
            [] => 0,
            bytes => bytes.as_ptr() as u64,
        };
        let address_mut = |bytes: &mut [u8]| match bytes {
            [] => 0,
            bytes => bytes.as_mut_ptr() as u64,
        };
        let mut attributes = ProgramTestRun {
            program: self.fd.as_raw_fd() as u32,
            data_size_in: size(run.data.len())?,
            data_size_out: size(data_out.len())?,
            data_in: address(run.data),
            data_out: address_mut(data_out),
            repeat: run.repeat,
            context_size_in: size(context_in.len())?,
            context_size_out: size(context_out.len())?,
            context_in: address_mut(context_in),
            context_out: address_mut(context_out),
            flags: run.flags,
            cpu: run.cpu,
            batch_size: run.batch_size,
            ..ProgramTestRun::default()
        };
        // SAFETY: each address is zero or that of a slice whose length stands
        // beside it; the kernel writes only to the three that are ours to write.
        unsafe { call(&mut attributes) }?;
        Ok(TestRunResult {
            retval: attributes.retval,
            data_len: attributes.data_size_out as usize,
            context_len: attributes.context_size_out as usize,
            duration: Duration::from_nanos(attributes.duration.into()),
        })
    }

    /// Runs a program of type syscall on a context, which the kernel writes back to where it
    /// was read; empty for none. Returns the low 32 bits of `r0`.
    pub fn run_syscall(&self, context: &mut [u8]) -> Result<u32, Errno> {
        let mut attributes = ProgramTestRun {
            program: self.fd.as_raw_fd() as u32,
            context_size_in: u32::try_from(context.len()).map_err(|_| Errno(libc::E2BIG))?,
            context_in: match context {
                [] => 0,
                bytes => bytes.as_mut_ptr() as u64,
            },
            ..ProgramTestRun::default()
        };
        // SAFETY: the address is zero or that of a slice whose length stands beside it and
        // which is ours to write.
        unsafe { call(&mut attributes) }?;
        Ok(attributes.retval)
    }
}
