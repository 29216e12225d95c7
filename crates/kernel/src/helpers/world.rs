//! Helpers that ask the world outside: clock, random numbers, CPU.

use vm::{MemoryPort, World};

use super::number;

pub(super) const KTIME_GET_NS: i32 = number("bpf_ktime_get_ns");
pub(super) const KTIME_GET_BOOT_NS: i32 = number("bpf_ktime_get_boot_ns");
pub(super) const KTIME_GET_COARSE_NS: i32 = number("bpf_ktime_get_coarse_ns");
pub(super) const GET_PRANDOM_U32: i32 = number("bpf_get_prandom_u32");
pub(super) const GET_SMP_PROCESSOR_ID: i32 = number("bpf_get_smp_processor_id");

/// `u64 bpf_ktime_get_ns(void)` and its kin.
pub(super) fn ktime_get_ns<M: MemoryPort>(
    _: [u64; 5],
    _: &mut M,
    world: &mut World<'_>,
) -> Result<u64, M::Fault> {
    Ok(world.clock.nanoseconds())
}

/// `u32 bpf_get_prandom_u32(void)`.
pub(super) fn get_prandom_u32<M: MemoryPort>(
    _: [u64; 5],
    _: &mut M,
    world: &mut World<'_>,
) -> Result<u64, M::Fault> {
    Ok(world.random.next_u32().into())
}

/// `u32 bpf_get_smp_processor_id(void)`.
pub(super) fn get_smp_processor_id<M: MemoryPort>(
    _: [u64; 5],
    _: &mut M,
    world: &mut World<'_>,
) -> Result<u64, M::Fault> {
    Ok(world.cpu.into())
}
