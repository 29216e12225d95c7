//! Helpers that report the process that a program runs in.

use spec::Errno;
use vm::{MemoryPort, RunContext};

use crate::call::{Call, Return};

/// Bytes of `struct bpf_pidns_info`: thread id and process id.
const PIDNS_INFO: usize = 8;

/// `u64 bpf_get_current_pid_tgid(void)`: process id above the thread id.
pub(super) fn get_current_pid_tgid<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(u64::from(cx.system.tgid) << 32 | u64::from(cx.system.pid))
}

/// `u64 bpf_get_current_uid_gid(void)`: group id above the user id.
pub(super) fn get_current_uid_gid<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(u64::from(cx.system.gid) << 32 | u64::from(cx.system.uid))
}

/// `u64 bpf_get_current_cgroup_id(void)`.
pub(super) fn get_current_cgroup_id<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.system.cgroup())
}

/// `u64 bpf_get_current_ancestor_cgroup_id(int level)`: 0 for a level below the process's
/// cgroup.
pub(super) fn get_current_ancestor_cgroup_id<M: MemoryPort>(
    Call([level, ..], _, cx): Call<M>,
) -> Return<M> {
    Ok(ancestor(cx, level))
}

/// The cgroup of the process, at a level below the root; 0 if it is not so deep.
pub(super) fn ancestor(cx: &RunContext<'_>, level: u64) -> u64 {
    let cgroups = &cx.system.cgroups;
    cgroups.get(level as u32 as usize).copied().unwrap_or(0)
}

/// `long bpf_get_current_comm(void *buf, u32 size)`: the name, as much as fits before a
/// final zero byte, and zeros up to the end of the buffer.
pub(super) fn get_current_comm<M: MemoryPort>(
    Call([to, size, ..], memory, cx): Call<M>,
) -> Return<M> {
    let comm = cx.system.comm;
    let len = comm.iter().take_while(|byte| **byte != 0).count();
    let mut bytes = vec![0; size as u32 as usize];
    let room = bytes.len().saturating_sub(1);
    let kept = len.min(room);
    bytes[..kept].copy_from_slice(&comm[..kept]);
    memory.write(to, &bytes)?;
    Ok(0)
}

/// `long bpf_get_ns_current_pid_tgid(u64 dev, u64 ino, struct bpf_pidns_info *info, u32
/// size)`: thread and process id in the pid namespace of that file; `-EINVAL` and zeros if
/// the process is in another one or the size is not that of the structure.
pub(super) fn get_ns_current_pid_tgid<M: MemoryPort>(
    Call([dev, ino, to, size, _], memory, cx): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    let is_own = (dev, ino) == cx.system.pid_namespace;
    if size != PIDNS_INFO || !is_own {
        memory.write(to, &vec![0; size])?;
        return Ok(Errno::EINVAL.negated());
    }
    memory.write(to, &cx.system.pid.to_le_bytes())?;
    memory.write(to + 4, &cx.system.tgid.to_le_bytes())?;
    Ok(0)
}
