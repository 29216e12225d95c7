//! BPF_BTF_LOAD.

use super::attributes::{BtfLoad, call};
use crate::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// BTF that the kernel took; gone when it is dropped and nothing else uses it.
#[derive(Debug)]
pub struct BtfObject {
    fd: OwnedFd,
}

impl BtfObject {
    /// Has the kernel take a blob.
    pub fn load(blob: &[u8]) -> Result<BtfObject, Errno> {
        ask(blob, &mut [])
    }

    /// The descriptor's number.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }
}

impl AsFd for BtfObject {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel's answer about a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtfAnswer {
    /// The error number, if it was refused.
    pub taken: Result<(), Errno>,
    /// The log, as far as there was room.
    pub log: Vec<u8>,
}

/// Has the kernel check a blob and lets go of it again. `room` is how many bytes of its
/// log are wanted; 0 for none. A log that does not fit is an error of its own (ENOSPC).
pub fn load_btf(blob: &[u8], room: usize) -> BtfAnswer {
    let mut log = vec![0u8; room];
    let taken = ask(blob, &mut log).map(drop);
    let len = log.iter().position(|&byte| byte == 0);
    log.truncate(len.unwrap_or(room));
    BtfAnswer { taken, log }
}

fn ask(blob: &[u8], log: &mut [u8]) -> Result<BtfObject, Errno> {
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
        log_level: u32::from(log_size != 0),
        ..BtfLoad::default()
    };
    // SAFETY: `btf` and `log` are those of a slice and of one that is ours to write,
    // with their lengths beside them.
    let fd = unsafe { call(&mut request) }?;
    // SAFETY: the command just made the descriptor, and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(BtfObject { fd })
}
