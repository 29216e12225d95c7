//! Helpers that read memory of the process: of runs in the checked engine what a test gives of it, otherwise
//! there is none.

use spec::Errno;
use vm::MemoryPort;

use super::EFAULT;
use super::bytes::Bytes;
use crate::call::{Call, Return};

/// `long bpf_probe_read_user(void *to, u32 size, const void *from)`: `-EFAULT` and zeros but where
/// a test gives memory of the process.
pub(super) fn probe_read_user<M: MemoryPort>(
    Call([to, size, from, ..], memory, _): Call<M>,
) -> Return<M> {
    user_memory(memory, to, size, from)
}

/// `long bpf_probe_read_user_str(void *to, u32 size, const void *from)`: as
/// [`probe_read_user`].
pub(super) fn probe_read_user_str<M: MemoryPort>(
    Call([to, size, from, ..], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    let mut text = Vec::new();
    while text.len() < size && text.last() != Some(&0) {
        let mut byte = [0];
        if !memory.probe_user(from.wrapping_add(text.len() as u64), &mut byte) {
            memory.write(to, Bytes::zeroed(size).get())?;
            return Ok(EFAULT);
        }
        text.extend(byte);
    }
    if let Some(last) = text.last_mut() {
        *last = 0;
    }
    memory.write(to, &text)?;
    Ok(text.len() as u64)
}

/// `long bpf_copy_from_user(void *to, u32 size, const void *from)`: as [`probe_read_user`].
pub(super) fn copy_from_user<M: MemoryPort>(
    Call([to, size, from, ..], memory, _): Call<M>,
) -> Return<M> {
    user_memory(memory, to, size, from)
}

/// `long bpf_copy_from_user_task(void *to, u32 size, const void *from, struct task_struct
/// *task, u64 flags)`: as [`probe_read_user`], of any task; `-EINVAL` for flags.
pub(super) fn copy_from_user_task<M: MemoryPort>(
    Call([to, size, from, _, flags], memory, _): Call<M>,
) -> Return<M> {
    match flags {
        0 => user_memory(memory, to, size, from),
        _ => Ok(Errno::EINVAL.negated()),
    }
}

/// Copies memory of the process; zeros and `-EFAULT` where there is none, unless nothing is to be read.
fn user_memory<M: MemoryPort>(memory: &mut M, to: u64, size: u64, from: u64) -> Return<M> {
    let size = size as u32 as usize;
    let mut bytes = Bytes::zeroed(size);
    let is_there = memory.probe_user(from, bytes.get_mut());
    memory.write(to, bytes.get())?;
    Ok(if size == 0 || is_there { 0 } else { EFAULT })
}
