//! Helpers that find what exists for each CPU: variables of the kernel and objects with copies.

use vm::MemoryPort;

use crate::call::{Call, Return};

/// `void *bpf_per_cpu_ptr(const void *percpu_ptr, u32 cpu)`: the address of the copy on a CPU, or
/// null if there is no such CPU.
pub(super) fn per_cpu_ptr<M: MemoryPort>(
    Call([pointer, cpu, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.per_cpu(pointer, cpu as u32)
}

/// `void *bpf_this_cpu_ptr(const void *percpu_ptr)`: the address of the copy on the CPU of the
/// run.
pub(super) fn this_cpu_ptr<M: MemoryPort>(Call([pointer, ..], memory, cx): Call<M>) -> Return<M> {
    memory.per_cpu(pointer, cx.cpu())
}
