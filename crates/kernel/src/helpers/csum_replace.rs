//! `bpf_l3_csum_replace` and `bpf_l4_csum_replace`: adjust a checksum in the packet to
//! what was replaced.

use spec::Errno;
use vm::MemoryPort;

use super::EFAULT;
use super::csum_diff::{add, fold};
use crate::call::{Call, Return, fail_if};

/// Bytes of the replaced field (`BPF_F_HDR_FIELD_MASK`); 0: `to` is a difference.
const FIELD_SIZE: u64 = 0xf;
/// The field is part of the pseudo header (`BPF_F_PSEUDO_HDR`).
const PSEUDO_HEADER: u64 = 0x10;
/// A checksum of 0 means none: it stays, and a new one that is 0 becomes 0xffff
/// (`BPF_F_MARK_MANGLED_0`).
const MARK_MANGLED_0: u64 = 0x20;
/// A checksum of 0 is adjusted, in spite of the flag above (`BPF_F_MARK_ENFORCE`).
const MARK_ENFORCE: u64 = 0x40;
/// The field is an address of IPv6 (`BPF_F_IPV6`).
const IPV6: u64 = 0x80;

/// `long bpf_l3_csum_replace(skb, u32 offset, u64 from, u64 to, u64 flags)`: the checksum at
/// the offset loses `from` and gets `to`, both of `flags` bytes; 0 bytes: it gets `to` as a
/// sum.
pub(super) fn l3_csum_replace<M: MemoryPort>(
    Call([context, offset, from, to, flags], memory, _): Call<M>,
) -> Return<M> {
    fail_if!(flags & !FIELD_SIZE != 0 => Errno::EINVAL);
    replace(memory, context, offset, |old| adjust(old, from, to, flags))
}

/// `long bpf_l4_csum_replace(skb, u32 offset, u64 from, u64 to, u64 flags)`: as
/// [`l3_csum_replace`], for the checksum of TCP or UDP.
pub(super) fn l4_csum_replace<M: MemoryPort>(
    Call([context, offset, from, to, flags], memory, _): Call<M>,
) -> Return<M> {
    let known = FIELD_SIZE | PSEUDO_HEADER | MARK_MANGLED_0 | MARK_ENFORCE | IPV6;
    fail_if!(flags & !known != 0 => Errno::EINVAL);
    let marks = flags & MARK_MANGLED_0 != 0;
    replace(memory, context, offset, |old| {
        if marks && flags & MARK_ENFORCE == 0 && old == 0 {
            return Some(old);
        }
        let is_difference = flags & FIELD_SIZE == 0;
        if is_difference && from != 0 {
            return None;
        }
        let new = adjust(old, from, to, flags & FIELD_SIZE)?;
        Some(if marks && new == 0 { 0xffff } else { new })
    })
}

/// Puts what `change` makes of it in place of the checksum at an offset of the packet.
fn replace<M: MemoryPort>(
    memory: &mut M,
    context: u64,
    offset: u64,
    change: impl FnOnce(u16) -> Option<u16>,
) -> Return<M> {
    let offset = offset as u32 as usize;
    let mut bytes = [0; 2];
    let is_inside = memory.packet(context)?.read(offset, &mut bytes);
    if offset > 0xffff || !offset.is_multiple_of(2) || !is_inside {
        return Ok(EFAULT);
    }
    let Some(new) = change(u16::from_le_bytes(bytes)) else {
        return Ok(Errno::EINVAL.negated());
    };
    memory.change_packet(context, |packet| packet.write(offset, &new.to_le_bytes()))?;
    Ok(0)
}

/// A checksum without `from` and with `to`; `None` for a size that there is not.
fn adjust(checksum: u16, from: u64, to: u64, size: u64) -> Option<u16> {
    let sum = u32::from(!checksum);
    match size {
        0 if from != 0 => None,
        0 => Some(!fold(add(to as u32, sum))),
        // Of 16 bits, with one carry folded back.
        2 => {
            let once = |a: u16, b: u16| {
                let (sum, carry) = a.overflowing_add(b);
                sum.wrapping_add(carry.into())
            };
            Some(!once(once(!checksum, !(from as u16)), to as u16))
        }
        4 => Some(!fold(add(add(sum, !(from as u32)), to as u32))),
        _ => None,
    }
}
