//! Helpers that read the stack of the kernel or of a process. There is none of either, as
//! for a program that interrupts nothing.

use spec::Errno;
use vm::MemoryPort;

use super::EFAULT;
use super::bytes::Bytes;
use crate::call::{Call, Return};

/// Frames to skip, and flags (`BPF_F_SKIP_FIELD_MASK`, `BPF_F_USER_STACK`,
/// `BPF_F_FAST_STACK_CMP`, `BPF_F_REUSE_STACKID`, `BPF_F_USER_BUILD_ID`).
const SKIPPED: u64 = 0xff;
const USER: u64 = 1 << 8;
const FAST_COMPARE: u64 = 1 << 9;
const REUSE: u64 = 1 << 10;
const BUILD_ID: u64 = 1 << 11;

/// Bytes of `struct bpf_stack_build_id`, and of an address.
const BUILD_ID_BYTES: usize = 32;
const ADDRESS_BYTES: usize = 8;

/// `long bpf_get_stackid(ctx, map, u64 flags)`: `-EFAULT`; `-EINVAL` for unknown flags.
pub(super) fn get_stackid<M: MemoryPort>(
    Call([_, map, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.map(map)?;
    Ok(match flags & !(SKIPPED | USER | FAST_COMPARE | REUSE) {
        0 => EFAULT,
        _ => Errno::EINVAL.negated(),
    })
}

/// `long bpf_get_stack(ctx, void *buf, u32 size, u64 flags)`: `-EFAULT`; `-EINVAL` for unknown
/// flags and sizes that are not those of whole entries. The buffer is zero.
pub(super) fn get_stack<M: MemoryPort>(
    Call([_, to, size, flags, _], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    memory.write(to, Bytes::zeroed(size).get())?;
    let entry = match flags & BUILD_ID {
        0 => ADDRESS_BYTES,
        _ => BUILD_ID_BYTES,
    };
    let is_known = flags & !(SKIPPED | USER | BUILD_ID) == 0;
    let is_of_user = flags & USER != 0;
    let fits = is_known && (is_of_user || flags & BUILD_ID == 0) && size.is_multiple_of(entry);
    Ok(match fits {
        true => EFAULT,
        false => Errno::EINVAL.negated(),
    })
}

/// `long bpf_get_task_stack(struct task_struct *task, void *buf, u32 size, u64 flags)`: as
/// [`get_stack`].
pub(super) fn get_task_stack<M: MemoryPort>(call: Call<M>) -> Return<M> {
    get_stack(call)
}
