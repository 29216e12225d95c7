//! Iterators: structures on the stack of a program that it makes, advances and destroys.
//!
//! `next` returns a pointer into the structure, or null at the end. The engine records which
//! structures are made ([`vm::Opened`]).

use spec::limits;
use spec::{Errno, Result};
use vm::{ModelPort, Opened};

use super::int;
use crate::call::{Call, Return};
use crate::helpers::Bytes;

/// Most numbers of a range (`BPF_MAX_LOOPS`).
const MAX_LOOPS: i64 = limits::LOOPS as i64;

/// Most words of a mask (`BITS_ITER_NR_WORDS_MAX`), and bytes of one.
const MOST_WORDS: usize = 511;
const WORD: usize = 8;
/// Offsets of the mask, its length and the place in an iterator over bits.
const MASK: u64 = 0;
const BITS: u64 = 8;
const PLACE: u64 = 12;

fn read_int<M: ModelPort>(memory: &M, address: u64) -> Result<i32, M::Fault> {
    let mut bytes = [0; 4];
    memory.read(address, &mut bytes)?;
    Ok(i32::from_le_bytes(bytes))
}

fn write_range<M: ModelPort>(
    memory: &mut M,
    iterator: u64,
    [current, end]: [i32; 2],
) -> Result<(), M::Fault> {
    let range = u64::from(end as u32) << 32 | u64::from(current as u32);
    memory.write(iterator, &range.to_le_bytes())
}

/// `int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)`: 0; `-EINVAL` for a
/// range that ends before its start, `-E2BIG` for more than 2^23 numbers: it is empty then.
pub(super) fn iter_num_new<M: ModelPort>(
    Call([iterator, start, end, ..], memory, _): Call<M>,
) -> Return<M> {
    let (start, end) = (start as i32, end as i32);
    memory.open(iterator, Opened::Numbers)?;
    let range = match i64::from(end) - i64::from(start) {
        ..0 => Err(Errno::EINVAL),
        len if len > MAX_LOOPS => Err(Errno::E2BIG),
        _ => Ok([start.wrapping_sub(1), end]),
    };
    write_range(memory, iterator, range.unwrap_or_default())?;
    Ok(int(range.map_or_else(Errno::negated, |_| 0)))
}

/// `int *bpf_iter_num_next(struct bpf_iter_num *it)`: the address of the next number.
pub(super) fn iter_num_next<M: ModelPort>(Call([iterator, ..], memory, _): Call<M>) -> Return<M> {
    memory.opened(iterator, Opened::Numbers.name())?;
    let (current, end) = (read_int(memory, iterator)?, read_int(memory, iterator + 4)?);
    let next = current.wrapping_add(1);
    let is_there = next < end;
    write_range(
        memory,
        iterator,
        if is_there { [next, end] } else { [0, 0] },
    )?;
    Ok(if is_there { iterator } else { 0 })
}

/// `void bpf_iter_num_destroy(struct bpf_iter_num *it)`.
pub(super) fn iter_num_destroy<M: ModelPort>(
    Call([iterator, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.close(iterator, Opened::Numbers.name())?;
    write_range(memory, iterator, [0, 0])?;
    Ok(0)
}

/// Name of iterators over bits.
const BITS_NAME: &str = "bpf_iter_bits";

/// `int bpf_iter_bits_new(struct bpf_iter_bits *it, const u64 *unsafe_ptr__ign, u32 nr_words)`:
/// 0; `-EINVAL` for no words, `-E2BIG` for more than 511, `-EFAULT` (for several words at an
/// address of user space `-ERANGE`) if they cannot be read: there are no bits then.
pub(super) fn iter_bits_new<M: ModelPort>(
    Call([iterator, mask, words, ..], memory, _): Call<M>,
) -> Return<M> {
    let copied = copy_mask(memory, mask, words as u32 as usize);
    let mask = copied.as_deref().unwrap_or_default();
    memory.open(iterator, Opened::Bits(mask.into()))?;
    let word = if mask.len() == 1 { mask[0] } else { 0 };
    let bits = 64 * mask.len() as u32;
    memory.write(iterator + MASK, &word.to_le_bytes())?;
    memory.write(iterator + BITS, &bits.to_le_bytes())?;
    memory.write(iterator + PLACE, &(-1i32).to_le_bytes())?;
    Ok(int(copied.map_or_else(Errno::negated, |_| 0)))
}

fn copy_mask<M: ModelPort>(memory: &M, mask: u64, words: usize) -> Result<Vec<u64>> {
    Errno::EINVAL.when(mask == 0 || words == 0)?;
    Errno::E2BIG.when(words > MOST_WORDS)?;
    let mut bytes = Bytes::zeroed(WORD * words);
    if !memory.probe(mask, bytes.get_mut()) {
        return Err(match words {
            1 => Errno::EFAULT,
            _ => crate::helpers::why_unreadable(mask),
        });
    }
    let (words, _) = bytes.get().as_chunks::<WORD>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// `int *bpf_iter_bits_next(struct bpf_iter_bits *it)`: the address of the number of the next
/// set bit.
pub(super) fn iter_bits_next<M: ModelPort>(Call([iterator, ..], memory, _): Call<M>) -> Return<M> {
    memory.opened(iterator, BITS_NAME)?;
    let place = read_int(memory, iterator + PLACE)?;
    let Opened::Bits(mask) = memory.opened(iterator, BITS_NAME)? else {
        return Ok(0);
    };
    let bits = 64 * mask.len() as i32;
    if place >= bits {
        return Ok(0);
    }
    let is_set = |bit: &i32| mask[*bit as usize / 64] >> (bit % 64) & 1 != 0;
    let next = (place.max(-1) + 1..bits).find(is_set);
    memory.write(iterator + PLACE, &next.unwrap_or(bits).to_le_bytes())?;
    Ok(match next {
        Some(_) => iterator + PLACE,
        None => 0,
    })
}

/// `void bpf_iter_bits_destroy(struct bpf_iter_bits *it)`.
pub(super) fn iter_bits_destroy<M: ModelPort>(
    Call([iterator, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.close(iterator, BITS_NAME)?;
    Ok(0)
}

/// Defines the functions of an iterator over what does not exist here.
macro_rules! empty {
    ($($structure:literal $new:ident $next:ident $destroy:ident $errno:expr,)*) => {
        $(
            #[doc = concat!("`int ", $structure, "_new(…)`: there is nothing of the kind.")]
            pub(super) fn $new<M: ModelPort>(Call([iterator, ..], memory, _): Call<M>) -> Return<M> {
                memory.open(iterator, Opened::Nothing($structure))?;
                let errno: Option<Errno> = $errno;
                Ok(int(errno.map_or(0, Errno::negated)))
            }

            #[doc = concat!("`", $structure, "_next(…)`: null.")]
            pub(super) fn $next<M: ModelPort>(Call([iterator, ..], memory, _): Call<M>) -> Return<M> {
                memory.opened(iterator, $structure)?;
                Ok(0)
            }

            #[doc = concat!("`void ", $structure, "_destroy(…)`.")]
            pub(super) fn $destroy<M: ModelPort>(Call([iterator, ..], memory, _): Call<M>) -> Return<M> {
                memory.close(iterator, $structure)?;
                Ok(0)
            }
        )*
    };
}

empty! {
    "bpf_iter_dmabuf" iter_dmabuf_new iter_dmabuf_next iter_dmabuf_destroy None,
    "bpf_iter_kmem_cache" iter_kmem_cache_new iter_kmem_cache_next iter_kmem_cache_destroy None,
    // A task without memory, as threads of the kernel are.
    "bpf_iter_task_vma" iter_task_vma_new iter_task_vma_next iter_task_vma_destroy
        Some(Errno::ENOENT),
}
