//! Helpers on storage of tasks and control groups, and comparisons of control groups.
//!
//! Tasks and control groups are known by the addresses that programs have for them; the task
//! that runs belongs to the process of [`vm::System`].

use spec::Errno;
use vm::{MemoryPort, RunContext, USER_REGISTERS, ValueOf};

use super::bytes::Bytes;
use super::map::status;
use super::socket_parts::{Found, found};
use crate::call::{Call, Return};
use crate::maps::{CURRENT_TASK, PACKET_SOCKET};

/// `BPF_LOCAL_STORAGE_GET_F_CREATE`: make a value if there is none.
const CREATE: u64 = 1;

/// `u64 bpf_get_current_task(void)`: the address of the task that runs.
pub(super) fn get_current_task<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.task)
}

/// `long bpf_task_pt_regs(struct task_struct *task)`: the address of the registers that the model
/// task had in user space, which are zero: it never was there.
pub(super) fn task_pt_regs<M: MemoryPort>(Call([task, ..], _, _): Call<M>) -> Return<M> {
    Ok(task + USER_REGISTERS)
}

/// `struct task_struct *bpf_get_current_task_btf(void)`: as [`get_current_task`].
pub(super) fn get_current_task_btf<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.task)
}

/// `void *bpf_task_storage_get(map, struct task_struct *task, void *value, u64 flags)`: the
/// value of a task; null if it has none and none is to be made.
pub(super) fn task_storage_get<M: MemoryPort>(
    Call([map, task, initial, flags, _], memory, cx): Call<M>,
) -> Return<M> {
    get([map, task_owner(task, cx), initial, flags, 0], memory)
}

/// `long bpf_task_storage_delete(map, struct task_struct *task)`: 0, `-ENOENT` without a
/// value, `-EINVAL` without a task.
pub(super) fn task_storage_delete<M: MemoryPort>(
    Call([map, task, ..], memory, cx): Call<M>,
) -> Return<M> {
    delete([map, task_owner(task, cx), 0, 0, 0], memory)
}

/// The owner that a task is in local storage: of the one that runs a number that does not depend
/// on the addresses of the run.
fn task_owner(task: u64, cx: &RunContext<'_>) -> u64 {
    match task == cx.task {
        true => CURRENT_TASK,
        false => task,
    }
}

/// `void *bpf_cgrp_storage_get(map, struct cgroup *cgroup, void *value, u64 flags)`: as
/// [`task_storage_get`].
pub(super) fn cgrp_storage_get<M: MemoryPort>(Call(arguments, memory, _): Call<M>) -> Return<M> {
    get(arguments, memory)
}

/// `long bpf_cgrp_storage_delete(map, struct cgroup *cgroup)`: as [`task_storage_delete`].
pub(super) fn cgrp_storage_delete<M: MemoryPort>(Call(arguments, memory, _): Call<M>) -> Return<M> {
    delete(arguments, memory)
}

/// `void *bpf_sk_storage_get(map, void *sk, void *value, u64 flags)`: as [`task_storage_get`],
/// for whole sockets, known by their cookies.
pub(super) fn sk_storage_get<M: MemoryPort>(
    Call([map, socket, initial, flags, _], memory, cx): Call<M>,
) -> Return<M> {
    let owner = socket_owner(socket, memory, cx)?;
    get([map, owner, initial, flags, 0], memory)
}

/// `long bpf_sk_storage_delete(map, void *sk)`: as [`task_storage_delete`].
pub(super) fn sk_storage_delete<M: MemoryPort>(
    Call([map, socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    let owner = socket_owner(socket, memory, cx)?;
    delete([map, owner, 0, 0, 0], memory)
}

/// The owner that a whole socket is in local storage; 0 for others.
fn socket_owner<M: MemoryPort>(socket: u64, memory: &M, cx: &RunContext<'_>) -> Return<M> {
    Ok(match found(socket, memory, &cx.system.network.sockets)? {
        Found::Numbered(_, socket) if socket.is_whole() => socket.cookie,
        Found::Numbered(..) | Found::Nothing => 0,
        Found::OfPacket => PACKET_SOCKET,
    })
}

/// The value of an object in local storage.
pub(crate) fn get<M: MemoryPort>(
    [map, owner, initial, flags, _]: [u64; 5],
    memory: &mut M,
) -> Return<M> {
    let size = memory.map(map)?.value_size;
    if owner == 0 || flags & !CREATE != 0 {
        return Ok(0);
    }
    let initial = match initial {
        0 => Bytes::zeroed(size),
        address => Bytes::read(memory, address, size)?,
    };
    let initial = (flags & CREATE != 0).then_some(initial.get());
    memory.find(map, ValueOf::Owner(owner, initial))
}

/// Deletes the value of an object in local storage.
pub(crate) fn delete<M: MemoryPort>([map, owner, ..]: [u64; 5], memory: &mut M) -> Return<M> {
    let map = memory.map(map)?;
    Ok(status(match owner {
        0 => Err(Errno::EINVAL),
        owner => map.operations().disown(owner),
    }))
}

/// `void *bpf_get_local_storage(map, u64 flags)`: the value of the program and its control
/// group.
pub(super) fn get_local_storage<M: MemoryPort>(Call([map, ..], memory, cx): Call<M>) -> Return<M> {
    memory.find(map, ValueOf::Local(cx.cpu()))
}

/// `long bpf_skb_under_cgroup(skb, map, u32 index)`: 1 if the socket of the packet, one of the
/// process, is in the control group at an index or below it; `-E2BIG` behind the last index,
/// `-EAGAIN` if there is none.
pub(super) fn skb_under_cgroup<M: MemoryPort>(
    Call([_, map, index, ..], memory, cx): Call<M>,
) -> Return<M> {
    under_cgroup(memory, map, index, cx)
}

/// `long bpf_current_task_under_cgroup(map, u32 index)`: the same of the process.
pub(super) fn current_task_under_cgroup<M: MemoryPort>(
    Call([map, index, ..], memory, cx): Call<M>,
) -> Return<M> {
    under_cgroup(memory, map, index, cx)
}

fn under_cgroup<M: MemoryPort>(memory: &M, map: u64, index: u64, cx: &RunContext<'_>) -> Return<M> {
    Ok(match memory.map(map)?.operations().cgroup(index as u32) {
        Ok(id) => cx.system.cgroups.contains(&id).into(),
        Err(errno) => errno.negated(),
    })
}

/// `void *bpf_kptr_xchg(void *dst, void *ptr)`: puts a pointer, or null, into the value of a
/// map; the one that was there.
pub(super) fn kptr_xchg<M: MemoryPort>(
    Call([place, pointer, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.exchange(place, pointer)
}
