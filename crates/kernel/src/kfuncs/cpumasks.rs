//! Masks of CPUs as objects: a bit for each possible CPU of the machine, in words of 64.

use std::sync::{Arc, LazyLock};

use spec::Errno;
use vm::{ModelPort, ObjectLayout};

use super::allocations::held;
use super::int;
use crate::call::{Call, Return};

/// Bytes of a mask (of 8,192 CPUs) and of its reference count.
const MASK: usize = 1024;
const COUNT: usize = 4;

/// `struct bpf_cpumask`.
static LAYOUT: LazyLock<Arc<ObjectLayout>> = LazyLock::new(|| {
    Arc::new(ObjectLayout {
        name: "bpf_cpumask".to_owned(),
        size: MASK + COUNT,
        owning: Vec::new(),
    })
});

/// The bits of possible CPUs of a mask, by CPU.
fn read<M: ModelPort>(memory: &M, mask: u64) -> Result<Vec<bool>, M::Fault> {
    let cpus = memory.objects()?.cpus() as usize;
    let mut bytes = vec![0; cpus.div_ceil(64) * 8];
    memory.read(mask, &mut bytes)?;
    let bit = |cpu: usize| bytes[cpu / 8] >> (cpu % 8) & 1 != 0;
    Ok((0..cpus).map(bit).collect())
}

fn write<M: ModelPort>(memory: &mut M, mask: u64, bits: &[bool]) -> Result<(), M::Fault> {
    let mut bytes = vec![0; bits.len().div_ceil(64) * 8];
    for (cpu, is_set) in bits.iter().enumerate() {
        bytes[cpu / 8] |= u8::from(*is_set) << (cpu % 8);
    }
    memory.write(mask, &bytes)
}

/// The first CPU whose bit is set; the number of CPUs if none is.
fn first_of(bits: &[bool]) -> u64 {
    let first = bits.iter().position(|is_set| *is_set);
    first.unwrap_or(bits.len()) as u64
}

/// `struct bpf_cpumask *bpf_cpumask_create(void)`: an empty mask; null without memory.
pub(super) fn cpumask_create<M: ModelPort>(Call(_, memory, _): Call<M>) -> Return<M> {
    let made = memory.objects()?.allocate(&LAYOUT);
    Ok(held(memory, made))
}

/// `struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *cpumask)`: the same mask, with
/// one more reference.
pub(super) fn cpumask_acquire<M: ModelPort>(call: Call<M>) -> Return<M> {
    super::allocations::refcount_acquire_impl(call)
}

/// `void bpf_cpumask_release(struct bpf_cpumask *cpumask)`: drops a reference.
pub(super) fn cpumask_release<M: ModelPort>(call: Call<M>) -> Return<M> {
    super::allocations::obj_drop_impl(call)
}

/// Changes the bit of a CPU, if there is such a CPU, and returns what it was.
fn change<M: ModelPort>(memory: &mut M, [cpu, mask]: [u64; 2], to: bool) -> Result<bool, M::Fault> {
    let mut bits = read(memory, mask)?;
    let Some(bit) = bits.get_mut(cpu as u32 as usize) else {
        return Ok(false);
    };
    let was = std::mem::replace(bit, to);
    write(memory, mask, &bits)?;
    Ok(was)
}

/// `void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *cpumask)`: nothing for a CPU that
/// there is not.
pub(super) fn cpumask_set_cpu<M: ModelPort>(
    Call([cpu, mask, ..], memory, _): Call<M>,
) -> Return<M> {
    change(memory, [cpu, mask], true)?;
    Ok(0)
}

/// `void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask)`: as [`cpumask_set_cpu`].
pub(super) fn cpumask_clear_cpu<M: ModelPort>(
    Call([cpu, mask, ..], memory, _): Call<M>,
) -> Return<M> {
    change(memory, [cpu, mask], false)?;
    Ok(0)
}

/// `bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *cpumask)`: what the bit was;
/// false for a CPU that there is not.
pub(super) fn cpumask_test_and_set_cpu<M: ModelPort>(
    Call([cpu, mask, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(change(memory, [cpu, mask], true)?.into())
}

/// `bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *cpumask)`: as
/// [`cpumask_test_and_set_cpu`].
pub(super) fn cpumask_test_and_clear_cpu<M: ModelPort>(
    Call([cpu, mask, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(change(memory, [cpu, mask], false)?.into())
}

/// `bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask)`.
pub(super) fn cpumask_test_cpu<M: ModelPort>(
    Call([cpu, mask, ..], memory, _): Call<M>,
) -> Return<M> {
    let bits = read(memory, mask)?;
    Ok(bits.get(cpu as u32 as usize).is_some_and(|bit| *bit).into())
}

/// `void bpf_cpumask_setall(struct bpf_cpumask *cpumask)`: sets the bits of all CPUs.
pub(super) fn cpumask_setall<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    let all = vec![true; memory.objects()?.cpus() as usize];
    write(memory, mask, &all)?;
    Ok(0)
}

/// `void bpf_cpumask_clear(struct bpf_cpumask *cpumask)`.
pub(super) fn cpumask_clear<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    let none = vec![false; memory.objects()?.cpus() as usize];
    write(memory, mask, &none)?;
    Ok(0)
}

/// `void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src)`.
pub(super) fn cpumask_copy<M: ModelPort>(Call([to, from, ..], memory, _): Call<M>) -> Return<M> {
    let bits = read(memory, from)?;
    write(memory, to, &bits)?;
    Ok(0)
}

/// `int bpf_cpumask_populate(struct cpumask *cpumask, void *src, size_t src__sz)`: 0; `-EACCES`
/// for fewer bytes than the CPUs need, `-EINVAL` for an address that is no multiple of 8.
pub(super) fn cpumask_populate<M: ModelPort>(
    Call([mask, from, size, ..], memory, _): Call<M>,
) -> Return<M> {
    let cpus = memory.objects()?.cpus() as usize;
    if size < (cpus.div_ceil(64) * 8) as u64 {
        return Ok(int(Errno::EACCES.negated()));
    }
    if !from.is_multiple_of(8) {
        return Ok(int(Errno::EINVAL.negated()));
    }
    let bits = read(memory, from)?;
    write(memory, mask, &bits)?;
    Ok(0)
}

/// Writes what an operation makes of the bits of two masks; true if one is set.
fn combine<M: ModelPort>(
    memory: &mut M,
    [to, first, second]: [u64; 3],
    operation: fn(bool, bool) -> bool,
) -> Result<bool, M::Fault> {
    let bits = pairs(memory, [first, second])?;
    let bits: Vec<bool> = bits
        .into_iter()
        .map(|(one, other)| operation(one, other))
        .collect();
    write(memory, to, &bits)?;
    Ok(bits.contains(&true))
}

/// The bits of two masks, by CPU.
fn pairs<M: ModelPort>(
    memory: &M,
    [first, second]: [u64; 2],
) -> Result<Vec<(bool, bool)>, M::Fault> {
    let (first, second) = (read(memory, first)?, read(memory, second)?);
    Ok(first.into_iter().zip(second).collect())
}

/// `bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *src1, src2)`: true if a
/// bit is set in both.
pub(super) fn cpumask_and<M: ModelPort>(
    Call([to, first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(combine(memory, [to, first, second], |one, other| one & other)?.into())
}

/// `void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *src1, src2)`.
pub(super) fn cpumask_or<M: ModelPort>(
    Call([to, first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    combine(memory, [to, first, second], |one, other| one | other)?;
    Ok(0)
}

/// `void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *src1, src2)`.
pub(super) fn cpumask_xor<M: ModelPort>(
    Call([to, first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    combine(memory, [to, first, second], |one, other| one ^ other)?;
    Ok(0)
}

/// `bool bpf_cpumask_equal(const struct cpumask *src1, const struct cpumask *src2)`.
pub(super) fn cpumask_equal<M: ModelPort>(
    Call([first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    let bits = pairs(memory, [first, second])?;
    Ok(bits.iter().all(|(one, other)| one == other).into())
}

/// `bool bpf_cpumask_intersects(const struct cpumask *src1, const struct cpumask *src2)`.
pub(super) fn cpumask_intersects<M: ModelPort>(
    Call([first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    let bits = pairs(memory, [first, second])?;
    Ok(bits.contains(&(true, true)).into())
}

/// `bool bpf_cpumask_subset(const struct cpumask *src1, const struct cpumask *src2)`: true if no
/// bit is set in the first one only.
pub(super) fn cpumask_subset<M: ModelPort>(
    Call([first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    let bits = pairs(memory, [first, second])?;
    Ok((!bits.contains(&(true, false))).into())
}

/// `bool bpf_cpumask_empty(const struct cpumask *cpumask)`.
pub(super) fn cpumask_empty<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    Ok((!read(memory, mask)?.contains(&true)).into())
}

/// `bool bpf_cpumask_full(const struct cpumask *cpumask)`.
pub(super) fn cpumask_full<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    Ok((!read(memory, mask)?.contains(&false)).into())
}

/// `u32 bpf_cpumask_weight(const struct cpumask *cpumask)`: number of set bits.
pub(super) fn cpumask_weight<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    let bits = read(memory, mask)?;
    Ok(bits.iter().filter(|is_set| **is_set).count() as u64)
}

/// `u32 bpf_cpumask_first(const struct cpumask *cpumask)`: the first CPU whose bit is set; at
/// least the number of CPUs if none is.
pub(super) fn cpumask_first<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    Ok(first_of(&read(memory, mask)?))
}

/// `u32 bpf_cpumask_first_zero(const struct cpumask *cpumask)`: the first CPU whose bit is not
/// set.
pub(super) fn cpumask_first_zero<M: ModelPort>(Call([mask, ..], memory, _): Call<M>) -> Return<M> {
    let bits: Vec<bool> = read(memory, mask)?
        .into_iter()
        .map(|is_set| !is_set)
        .collect();
    Ok(first_of(&bits))
}

/// `u32 bpf_cpumask_first_and(const struct cpumask *src1, const struct cpumask *src2)`: the first
/// CPU whose bit is set in both.
pub(super) fn cpumask_first_and<M: ModelPort>(
    Call([first, second, ..], memory, _): Call<M>,
) -> Return<M> {
    let bits = pairs(memory, [first, second])?;
    let bits: Vec<bool> = bits.into_iter().map(|(one, other)| one & other).collect();
    Ok(first_of(&bits))
}

/// `u32 bpf_cpumask_any_distribute(const struct cpumask *cpumask)`: a CPU whose bit is set, here
/// the first one; Linux continues behind the one of the last call.
pub(super) fn cpumask_any_distribute<M: ModelPort>(call: Call<M>) -> Return<M> {
    cpumask_first(call)
}

/// `u32 bpf_cpumask_any_and_distribute(const struct cpumask *src1, const struct cpumask *src2)`:
/// as [`cpumask_any_distribute`], of the bits that are set in both.
pub(super) fn cpumask_any_and_distribute<M: ModelPort>(call: Call<M>) -> Return<M> {
    cpumask_first_and(call)
}
