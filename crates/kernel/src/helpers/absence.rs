//! Helpers about what does not exist here: they return what the kernel returns where it does
//! not exist either.

use spec::Errno;
use vm::MemoryPort;

use super::EFAULT;
use super::bytes::Bytes;
use crate::call::{Call, Return, fail_if};

/// `u32 bpf_get_cgroup_classid(skb)`: 0, no class is configured.
pub(super) fn get_cgroup_classid<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `u64 bpf_skb_cgroup_classid(skb)`: 0, no class is configured.
pub(super) fn skb_cgroup_classid<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `u32 bpf_get_route_realm(skb)`: 0, the packet was not routed.
pub(super) fn get_route_realm<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `long bpf_skb_get_xfrm_state(skb, u32 index, struct bpf_xfrm_state *state, u32 size, u64
/// flags)`: `-EINVAL` and zeros, the packet went through no transformation.
pub(super) fn skb_get_xfrm_state<M: MemoryPort>(
    Call([_, _, to, size, _], memory, _): Call<M>,
) -> Return<M> {
    memory.write(to, Bytes::zeroed(size as u32 as usize).get())?;
    Ok(Errno::EINVAL.negated())
}

/// `long bpf_send_signal(u32 signal)`: `-EPERM`, the first process gets none.
pub(super) fn send_signal<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(Errno::EPERM.negated())
}

/// `long bpf_send_signal_thread(u32 signal)`: as [`send_signal`].
pub(super) fn send_signal_thread<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(Errno::EPERM.negated())
}

/// `long bpf_probe_write_user(void *to, const void *from, u32 size)`: `-EFAULT`, the process has no
/// memory.
pub(super) fn probe_write_user<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(EFAULT)
}

/// `long bpf_get_branch_snapshot(void *entries, u32 size, u64 flags)`: `-ENOENT`, there is no
/// record of branches; `-EINVAL` for flags.
pub(super) fn get_branch_snapshot<M: MemoryPort>(
    Call([_, _, flags, ..], _, _): Call<M>,
) -> Return<M> {
    Ok(match flags {
        0 => Errno::ENOENT.negated(),
        _ => Errno::EINVAL.negated(),
    })
}

/// `long bpf_kallsyms_lookup_name(const char *name, int size, int flags, u64 *address)`:
/// `-ENOENT`, the kernel has no symbols; `-EINVAL` for flags and for a name that does not end
/// with a zero byte.
pub(super) fn kallsyms_lookup_name<M: MemoryPort>(
    Call([name, size, flags, address, _], memory, _): Call<M>,
) -> Return<M> {
    memory.write(address, &[0; 8])?;
    let size = size as i32;
    fail_if!(flags as u32 != 0 || size <= 1 => Errno::EINVAL);
    let mut last = [0];
    memory.read(name + size as u64 - 1, &mut last)?;
    Ok(match last {
        [0] => Errno::ENOENT.negated(),
        _ => Errno::EINVAL.negated(),
    })
}

/// `long bpf_perf_event_read(map, u64 flags)`: `-EINVAL` for flags, `-E2BIG` for an index
/// behind the map's last, `-ENOENT`: no buffer counts.
pub(super) fn perf_event_read<M: MemoryPort>(
    Call([map, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    counter(memory, map, flags, cx.cpu())
}

/// `long bpf_perf_event_read_value(map, u64 flags, struct bpf_perf_event_value *value, u32
/// size)`: as [`perf_event_read`], with zeros; `-EINVAL` for another size than 24.
pub(super) fn perf_event_read_value<M: MemoryPort>(
    Call([map, flags, to, size, _], memory, cx): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    memory.write(to, Bytes::zeroed(size).get())?;
    match size {
        24 => counter(memory, map, flags, cx.cpu()),
        _ => Ok(Errno::EINVAL.negated()),
    }
}

fn counter<M: MemoryPort>(memory: &mut M, map: u64, flags: u64, cpu: u32) -> Return<M> {
    const INDEX: u64 = 0xffff_ffff;
    let index = match flags & INDEX {
        INDEX => cpu,
        index => index as u32,
    };
    let entries = memory.map(map)?.max_entries;
    Ok(match index {
        _ if flags & !INDEX != 0 => Errno::EINVAL.negated(),
        index if index >= entries => Errno::E2BIG.negated(),
        _ => Errno::ENOENT.negated(),
    })
}

/// `long bpf_find_vma(struct task_struct *task, u64 address, void *callback_fn, void
/// *callback_ctx, u64 flags)`: `-ENOENT`, no task has memory; `-EINVAL` for flags.
pub(super) fn find_vma<M: MemoryPort>(Call([.., flags], _, _): Call<M>) -> Return<M> {
    Ok(match flags {
        0 => Errno::ENOENT.negated(),
        _ => Errno::EINVAL.negated(),
    })
}

/// `long bpf_skb_output(struct sk_buff *skb, map, u64 flags, void *data, u64 size)`: `-EFAULT`,
/// no program has such a packet; `-EINVAL` for unknown flags.
pub(super) fn skb_output<M: MemoryPort>(Call([_, _, flags, ..], _, _): Call<M>) -> Return<M> {
    const INDEX_AND_LENGTH: u64 = 0x000f_ffff_ffff_ffff;
    Ok(match flags & !INDEX_AND_LENGTH {
        0 => EFAULT,
        _ => Errno::EINVAL.negated(),
    })
}

/// `long bpf_xdp_output(struct xdp_buff *xdp, map, u64 flags, void *data, u64 size)`: as
/// [`skb_output`].
pub(super) fn xdp_output<M: MemoryPort>(call: Call<M>) -> Return<M> {
    skb_output(call)
}

/// `long bpf_d_path(struct path *path, char *buf, u32 size)`: `-EFAULT`, there are no files; 0
/// for an empty buffer.
pub(super) fn d_path<M: MemoryPort>(Call([_, _, size, ..], _, _): Call<M>) -> Return<M> {
    Ok(if size as u32 == 0 { 0 } else { EFAULT })
}

/// `struct socket *bpf_sock_from_file(struct file *file)`: null, no file is a socket.
pub(super) fn sock_from_file<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `u64 bpf_get_attach_cookie(ctx)`: 0, a test run is attached nowhere.
pub(super) fn get_attach_cookie<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `u64 bpf_get_func_ip(ctx)`: 0, no function is traced. The verifier refuses it for the types
/// that are test-run.
pub(super) fn get_func_ip<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}
