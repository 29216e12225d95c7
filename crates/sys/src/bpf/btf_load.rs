//! BPF_BTF_LOAD.

use super::LogLevel;
use super::attributes::{BtfLoad, call};
use crate::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// File descriptor of BTF in the running kernel. The kernel frees the BTF when its last
/// user is gone.
#[derive(Debug)]
pub struct BtfObject {
    fd: OwnedFd,
}

impl BtfObject {
    /// Loads a BTF blob without a log.
    pub fn load(blob: &[u8]) -> Result<BtfObject, Errno> {
        load(blob, LogLevel::NONE, &mut [])
    }

    /// Number of the file descriptor.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }
}

impl AsFd for BtfObject {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Result of `BPF_BTF_LOAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtfAnswer {
    /// Error number, if the kernel rejected the blob. ENOSPC if the log did not fit.
    pub result: Result<(), Errno>,
    /// Log, cut to the size of the buffer.
    pub log: Vec<u8>,
}

/// Loads a BTF blob and unloads it again; returns the result and the log. `log_size` is
/// the size of the log buffer in bytes; 0 for none. The kernel refuses a buffer with
/// level 0 (EINVAL).
pub fn btf_load(blob: &[u8], log_level: LogLevel, log_size: usize) -> BtfAnswer {
    let mut log = vec![0u8; log_size];
    let result = load(blob, log_level, &mut log).map(drop);
    let len = log.iter().position(|&byte| byte == 0);
    log.truncate(len.unwrap_or(log_size));
    BtfAnswer { result, log }
}

fn load(blob: &[u8], level: LogLevel, log: &mut [u8]) -> Result<BtfObject, Errno> {
    let size = |len: usize| u32::try_from(len).map_err(|_| Errno(libc::E2BIG));
    let log_size = size(log.len())?;
    let mut request = BtfLoad {
        btf: blob.as_ptr() as u64,
        log: if log_size == 0 {
            0
        } else {
            log.as_mut_ptr() as u64
        },
        btf_size: size(blob.len())?,
        log_size,
        log_level: level.0,
        ..BtfLoad::default()
    };
    // SAFETY: `btf` is the address of a slice, `log` that of a writable one, with their
    // lengths beside them.
    let fd = unsafe { call(&mut request) }?;
    // SAFETY: the command just made the descriptor, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(BtfObject { fd })
}
