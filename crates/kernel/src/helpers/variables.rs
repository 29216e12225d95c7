//! Helpers that find what exists for each CPU: variables of the kernel and objects with copies.

use vm::{MemoryPort, RunContext};

/// `void *bpf_per_cpu_ptr(const void *percpu_ptr, u32 cpu)`: the address of the copy on a CPU, or
/// null if there is no such CPU.
pub(super) fn per_cpu_ptr<M: MemoryPort>(
    [pointer, cpu, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    memory.per_cpu(pointer, cpu as u32)
}

/// `void *bpf_this_cpu_ptr(const void *percpu_ptr)`: the address of the copy on the CPU of the
/// run.
pub(super) fn this_cpu_ptr<M: MemoryPort>(
    [pointer, ..]: [u64; 5],
    memory: &mut M,
    cx: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    memory.per_cpu(pointer, cx.cpu())
}
