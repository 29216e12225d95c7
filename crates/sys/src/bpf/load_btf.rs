//! BPF_BTF_LOAD: does the kernel take these types, and what does it say?

use super::attributes::{BtfLoad, call};
use crate::Errno;
use std::os::fd::{FromRawFd, OwnedFd};

/// What the kernel said about a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtfAnswer {
    /// Was it taken? If not, why, in a word.
    pub taken: Result<(), Errno>,
    /// What the kernel wrote meanwhile, as far as there was room.
    pub log: Vec<u8>,
}

/// Has the kernel check a blob and lets go of it again. `room` is how many bytes
/// of its log are wanted; 0 for none. A log that does not fit is an error of its
/// own (ENOSPC).
pub fn load_btf(blob: &[u8], room: usize) -> BtfAnswer {
    let mut log = vec![0u8; room];
    let mut request = BtfLoad {
        btf: blob.as_ptr() as u64,
        log: if room == 0 {
            0
        } else {
            log.as_mut_ptr() as u64
        },
        btf_size: blob.len() as u32,
        log_size: room as u32,
        log_level: u32::from(room != 0),
        ..BtfLoad::default()
    };
    // SAFETY: `btf` and `log` are those of a slice and of a vector that is ours,
    // with their lengths beside them.
    let answer = unsafe { call(&mut request) };
    let len = log.iter().position(|&byte| byte == 0);
    log.truncate(len.unwrap_or(room));
    BtfAnswer {
        // SAFETY: the kernel has just made this descriptor for us.
        taken: answer.map(|fd| drop(unsafe { OwnedFd::from_raw_fd(fd) })),
        log,
    }
}
