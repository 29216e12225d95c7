//! Functions about what does not exist here: they return what the kernel returns where it
//! does not exist either.

use spec::Errno;
use vm::MemoryPort;

use super::int;
use crate::call::{Call, Return};
use crate::helpers::Bytes;

/// `struct task_struct *bpf_task_from_pid(s32 pid)`: null, there are no tasks.
pub(super) fn task_from_pid<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `struct task_struct *bpf_task_from_vpid(s32 vpid)`: as [`task_from_pid`].
pub(super) fn task_from_vpid<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `struct cgroup *bpf_cgroup_from_id(u64 cgid)`: null, there are no cgroups.
pub(super) fn cgroup_from_id<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `struct kmem_cache *bpf_get_kmem_cache(u64 addr)`: null, no address is in a slab.
pub(super) fn get_kmem_cache<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `struct bpf_key *bpf_lookup_system_key(u64 id)`: null, there are no keys.
pub(super) fn lookup_system_key<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `struct bpf_key *bpf_lookup_user_key(s32 serial, u64 flags)`: null, there are no keys.
pub(super) fn lookup_user_key<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `struct bpf_crypto_ctx *bpf_crypto_ctx_create(const struct bpf_crypto_params *params, u32
/// params__sz, int *err)`: null and `-ENOENT`, there are no ciphers; `-EINVAL` for another
/// size or reserved bytes.
pub(super) fn crypto_ctx_create<M: MemoryPort>(
    Call([parameters, size, error, ..], memory, _): Call<M>,
) -> Return<M> {
    /// Bytes of `struct bpf_crypto_params`, and offset of its reserved bytes.
    const SIZE: u64 = 408;
    const RESERVED: u64 = 14;
    let mut reserved = [0; 2];
    let mut errno = Errno::EINVAL;
    if u64::from(size as u32) == SIZE {
        memory.read(parameters + RESERVED, &mut reserved)?;
        if reserved == [0; 2] {
            errno = Errno::ENOENT;
        }
    }
    memory.write(error, &errno.negated().to_le_bytes()[..4])?;
    Ok(0)
}

/// `struct xfrm_state *bpf_xdp_get_xfrm_state(xdp_md, struct bpf_xfrm_state_opts *opts, u32
/// opts__sz)`: null, and in the options `-ENOENT`: there are no transformations; `-EINVAL`
/// for another size or a negative namespace, `-ENONET` for one that is not there.
pub(super) fn xdp_get_xfrm_state<M: MemoryPort>(
    Call([_, options, size, ..], memory, _): Call<M>,
) -> Return<M> {
    /// Bytes of `struct bpf_xfrm_state_opts`, and offset of the namespace in it.
    const SIZE: u64 = 36;
    const NETNS: u64 = 4;
    const CURRENT: i32 = -1;
    let size = u64::from(size as u32);
    if size < 4 {
        return Ok(0);
    }
    let errno = match size {
        SIZE => {
            let mut netns = [0; 4];
            memory.read(options + NETNS, &mut netns)?;
            match i32::from_le_bytes(netns) {
                CURRENT => Errno::ENOENT,
                netns if netns < CURRENT => Errno::EINVAL,
                _ => Errno::ENONET,
            }
        }
        _ => Errno::EINVAL,
    };
    memory.write(options, &errno.negated().to_le_bytes()[..4])?;
    Ok(0)
}

/// `int bpf_copy_from_user_str(void *dst, u32 dst__sz, const void *unsafe_ptr__ign, u64
/// flags)`: `-EFAULT`, the process has no memory; `-EINVAL` for other flags than
/// `BPF_F_PAD_ZEROS`. Room for the end alone gets it, and 1 is returned.
pub(super) fn copy_from_user_str<M: MemoryPort>(
    Call([to, size, _, flags, _], memory, _): Call<M>,
) -> Return<M> {
    const PAD_ZEROS: u64 = 1;
    let size = size as u32 as usize;
    Ok(int(match flags {
        _ if flags & !PAD_ZEROS != 0 => Errno::EINVAL.negated(),
        _ if size == 0 => 0,
        _ if size == 1 => {
            memory.write(to, &[0])?;
            1
        }
        0 => Errno::EFAULT.negated(),
        _ => {
            memory.write(to, Bytes::zeroed(size).get())?;
            Errno::EFAULT.negated()
        }
    }))
}

/// A function on an object that no other function returns here, so that no run gets to it.
pub(super) fn unreached<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}
