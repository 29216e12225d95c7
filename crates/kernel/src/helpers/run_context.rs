//! Helpers that report clock, random numbers and CPU.

use vm::MemoryPort;

use crate::call::{Call, Return};

/// `u64 bpf_ktime_get_ns(void)`.
pub(super) fn ktime_get_ns<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.nanoseconds())
}

/// `u64 bpf_ktime_get_coarse_ns(void)`: the same clock, which has no coarse ticks here.
pub(super) fn ktime_get_coarse_ns<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.nanoseconds())
}

/// `u64 bpf_ktime_get_boot_ns(void)`: with the time that the machine was suspended.
pub(super) fn ktime_get_boot_ns<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok((cx.nanoseconds()).wrapping_add(cx.system.suspended))
}

/// `u64 bpf_ktime_get_tai_ns(void)`: international atomic time.
pub(super) fn ktime_get_tai_ns<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok((cx.nanoseconds()).wrapping_add(cx.system.tai_offset))
}

/// `u64 bpf_jiffies64(void)`: timer ticks.
pub(super) fn jiffies64<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.system.jiffies(cx.nanoseconds()))
}

/// `u32 bpf_get_prandom_u32(void)`.
pub(super) fn get_prandom_u32<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.random.next_u32().into())
}

/// `u32 bpf_get_smp_processor_id(void)`.
pub(super) fn get_smp_processor_id<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.cpu().into())
}

/// `long bpf_get_numa_node_id(void)`.
pub(super) fn get_numa_node_id<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.system.numa_node.into())
}
