//! `bpf_strncmp`: compares text.

use vm::MemoryPort;

use crate::call::{Call, Return};

/// `long bpf_strncmp(s1, u32 s1_sz, s2)`: -1, 0 or 1; at most `s1_sz` bytes are compared,
/// and none after a zero byte of both.
pub(super) fn strncmp<M: MemoryPort>(
    Call([first, size, second, _, _], memory, _): Call<M>,
) -> Return<M> {
    for at in 0..u64::from(size as u32) {
        let (mut a, mut b) = ([0], [0]);
        memory.read(first.wrapping_add(at), &mut a)?;
        memory.read(second.wrapping_add(at), &mut b)?;
        match a.cmp(&b) {
            std::cmp::Ordering::Less => return Ok(-1i64 as u64),
            std::cmp::Ordering::Greater => return Ok(1),
            std::cmp::Ordering::Equal if a == [0] => break,
            std::cmp::Ordering::Equal => {}
        }
    }
    Ok(0)
}
