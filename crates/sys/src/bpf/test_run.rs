//! BPF_PROG_TEST_RUN.

use super::Program;
use super::attributes::{ProgramTestRun, call};
use crate::Errno;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// What to run a program on.
#[derive(Clone, Copy, Debug)]
pub struct TestRun<'a> {
    /// The packet; networking types want at least the 14 bytes of an Ethernet
    /// header.
    pub data: &'a [u8],
    /// The context, for types that take one; empty for none.
    pub context: &'a [u8],
    /// How often to run it (on the same data: what a run wrote, the next one
    /// finds).
    pub repeat: u32,
    /// Flags (BPF_F_TEST_RUN_ON_CPU, BPF_F_TEST_XDP_LIVE_FRAMES …).
    pub flags: u32,
    /// CPU to run on, with the flag for it.
    pub cpu: u32,
    /// Frames of a batch, for live frames.
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

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tested {
    /// What the last run returned, the low 32 bits of `r0`.
    pub retval: u32,
    /// Bytes of the packet afterwards; as many of them as fit are in `data_out`.
    pub data_len: usize,
    /// Bytes of the context afterwards; as many as fit are in `context_out`.
    pub context_len: usize,
    /// Mean time of a run, in whole nanoseconds, with the kernel's fixed cost.
    pub duration: Duration,
}

impl Program {
    /// Runs it, and writes the packet and the context as they are afterwards.
    ///
    /// Errors are the kernel's: ENOSPC for a `data_out` that is too short (when
    /// it is not empty), EINVAL for a packet that is, ENOTSUPP (524) for a type
    /// that cannot be run so.
    pub fn test_run(
        &self,
        run: &TestRun<'_>,
        data_out: &mut [u8],
        context_out: &mut [u8],
    ) -> Result<Tested, Errno> {
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
            context_size_in: size(run.context.len())?,
            context_size_out: size(context_out.len())?,
            context_in: address(run.context),
            context_out: address_mut(context_out),
            flags: run.flags,
            cpu: run.cpu,
            batch_size: run.batch_size,
            ..ProgramTestRun::default()
        };
        // SAFETY: each address is zero or that of a slice whose length stands
        // beside it; the kernel writes only to the two that are ours to write.
        unsafe { call(&mut attributes) }?;
        Ok(Tested {
            retval: attributes.retval,
            data_len: attributes.data_size_out as usize,
            context_len: attributes.context_size_out as usize,
            duration: Duration::from_nanos(attributes.duration.into()),
        })
    }
}
