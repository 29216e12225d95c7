//! Connection tracking over an empty table: each lookup is checked as in Linux and finds
//! nothing.

use spec::Errno;
use vm::MemoryPort;

use crate::call::{Call, Return};
use crate::helpers::Bytes;

/// Bytes of `struct bpf_ct_opts`, now and in its first form.
const OPTIONS: u64 = 16;
const FIRST_OPTIONS: u64 = 12;
/// Offsets in it.
const NETNS: usize = 0;
const ERROR: usize = 4;
const PROTOCOL: usize = 8;
const ZONE_DIRECTION: usize = 12;
const RESERVED: std::ops::Range<usize> = 13..16;
/// Offset of the last reserved bytes of its first form.
const FIRST_RESERVED: std::ops::Range<usize> = 10..12;

/// The direction of a zone that none is given for.
const BOTH_DIRECTIONS: u8 = 3;

/// Bytes of `struct bpf_sock_tuple` for IPv4 and IPv6.
const TUPLES: [u64; 2] = [12, 36];

/// `struct nf_conn *bpf_skb_ct_lookup(skb, struct bpf_sock_tuple *tuple, u32 tuple__sz,
/// struct bpf_ct_opts *opts, u32 opts__sz)`: null, and why in the options, if their size has room
/// for it. Linux writes it there for any size, beyond the memory that it was given.
pub(super) fn skb_ct_lookup<M: MemoryPort>(
    Call([_, _, tuple_size, options, size], memory, _): Call<M>,
) -> Return<M> {
    lookup(memory, tuple_size, options, size)
}

/// `struct nf_conn *bpf_xdp_ct_lookup(xdp_md, …)`: as [`skb_ct_lookup`].
pub(super) fn xdp_ct_lookup<M: MemoryPort>(
    Call([_, _, tuple_size, options, size], memory, _): Call<M>,
) -> Return<M> {
    lookup(memory, tuple_size, options, size)
}

fn lookup<M: MemoryPort>(memory: &mut M, tuple_size: u64, options: u64, size: u64) -> Return<M> {
    let (size, tuple_size) = (u64::from(size as u32), u64::from(tuple_size as u32));
    let given = Bytes::read(memory, options, size as usize)?;
    let errno = why_absent(given.get(), tuple_size);
    let zone = given.get().get(ZONE_DIRECTION).copied();
    if errno == Errno::ENOENT && size == OPTIONS && zone == Some(0) {
        memory.write(options + ZONE_DIRECTION as u64, &[BOTH_DIRECTIONS])?;
    }
    if size >= ERROR as u64 + 4 {
        memory.write(options + ERROR as u64, &errno.negated().to_le_bytes()[..4])?;
    }
    Ok(0)
}

fn why_absent(options: &[u8], tuple_size: u64) -> Errno {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const CURRENT: i32 = -1;
    let reserved = match options.len() as u64 {
        OPTIONS => RESERVED,
        FIRST_OPTIONS => FIRST_RESERVED,
        _ => return Errno::EINVAL,
    };
    if options[reserved].iter().any(|byte| *byte != 0) {
        return Errno::EINVAL;
    }
    let mut netns = [0; 4];
    netns.copy_from_slice(&options[NETNS..NETNS + 4]);
    let netns = i32::from_le_bytes(netns);
    match options[PROTOCOL] {
        TCP | UDP if netns < CURRENT => Errno::EINVAL,
        TCP | UDP if !TUPLES.contains(&tuple_size) => Errno::EAFNOSUPPORT,
        TCP | UDP if netns != CURRENT => Errno::ENONET,
        TCP | UDP => Errno::ENOENT,
        _ => Errno::EPROTO,
    }
}
