//! `bpf_csum_diff`: what a checksum changes by when bytes are replaced.

use vm::MemoryPort;

use crate::call::{Call, Return};

/// `s64 bpf_csum_diff(from, from_size, to, to_size, seed)`: the ones' complement sum of
/// `to` without `from` and with `seed`, folded to 16 bits. Sizes that are not multiples of
/// 4 count as if zeros followed.
pub(super) fn csum_diff<M: MemoryPort>(
    Call([from, from_size, to, to_size, seed], memory, _): Call<M>,
) -> Return<M> {
    let (from_size, to_size) = (from_size as u32, to_size as u32);
    let from = sum(memory, from, from_size)?;
    let to = sum(memory, to, to_size)?;
    let seed = seed as u32;
    let total = match (from_size, to_size) {
        (0, 0) => seed,
        // Zero has two representations; which one is returned is the choice of Linux 6.18.
        (_, 0) => !add(from, !seed),
        (0, _) => add(to, seed),
        _ => add(add(to, seed), !from),
    };
    Ok(fold(total).into())
}

/// The ones' complement sum of bytes, 32 bits at a time.
fn sum<M: MemoryPort>(memory: &M, address: u64, size: u32) -> Result<u32, M::Fault> {
    let mut bytes = vec![0; size as usize];
    if size > 0 {
        memory.read(address, &mut bytes)?;
    }
    Ok(sum_of(&bytes))
}

/// The ones' complement sum of bytes, 32 bits at a time, as if zeros followed.
pub(super) fn sum_of(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(4).map(|word| {
        let mut whole = [0; 4];
        whole[..word.len()].copy_from_slice(word);
        u32::from_le_bytes(whole)
    });
    words.fold(0, add)
}

/// Addition with end-around carry.
pub(super) fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

/// The 16-bit sum that a 32-bit one stands for.
pub(super) fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}
