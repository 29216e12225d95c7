//! Helpers that make system calls in the process of the run.

use spec::Errno;
use vm::{BpfCall, MemoryPort};

use super::bytes::Bytes;
use crate::call::{Call, Return, fail_if};

/// Most bytes of attributes (a page).
const MOST_BYTES: usize = 4096;

/// Commands that programs may give: `BPF_MAP_CREATE`, `BPF_MAP_UPDATE_ELEM`,
/// `BPF_MAP_DELETE_ELEM`, `BPF_PROG_LOAD`, `BPF_MAP_GET_FD_BY_ID`, `BPF_RAW_TRACEPOINT_OPEN`,
/// `BPF_BTF_LOAD`, `BPF_MAP_FREEZE`, `BPF_LINK_CREATE`.
const ALLOWED: [u32; 9] = [0, 2, 3, 5, 14, 17, 18, 22, 28];

/// `long bpf_sys_bpf(u32 cmd, void *attr, u32 attr_size)`: what bpf(2) returns; `-EINVAL` for
/// commands that programs may not give.
pub(super) fn sys_bpf<M: MemoryPort>(
    Call([command, attributes, size, ..], memory, cx): Call<M>,
) -> Return<M> {
    let (command, size) = (command as u32, size as u32 as usize);
    fail_if!(!ALLOWED.contains(&command) => Errno::EINVAL);
    let Some(process) = cx.process else {
        return Ok(Errno::EPERM.negated());
    };
    fail_if!(size > MOST_BYTES => Errno::E2BIG);
    let mut bytes = Bytes::zeroed(size);
    memory.read(attributes, bytes.get_mut())?;
    let before = bytes.get().to_vec();
    let mut call = BpfCall {
        command,
        attributes: bytes.get_mut(),
        read: &|address, into| memory.probe(address, into),
    };
    let result = process.bpf(&mut call);
    for (at, (old, new)) in (attributes..).zip(before.iter().zip(bytes.get())) {
        if old != new {
            memory.write(at, &[*new])?;
        }
    }
    Ok(match result {
        Ok(descriptor) => descriptor.into(),
        Err(errno) => errno.negated(),
    })
}

/// `long bpf_sys_close(u32 fd)`: `-EBADF` if the descriptor is not open.
pub(super) fn sys_close<M: MemoryPort>(Call([descriptor, ..], _, cx): Call<M>) -> Return<M> {
    let closed = match cx.process {
        Some(process) => process.close(descriptor as u32),
        None => Err(Errno::EBADF),
    };
    Ok(match closed {
        Ok(()) => 0,
        Err(errno) => errno.negated(),
    })
}
