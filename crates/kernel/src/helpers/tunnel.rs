//! Helpers for the tunnel that a packet goes through next.

use spec::Errno;
use vm::{MemoryPort, Tunnel};

use super::bytes::Bytes;
use crate::call::{Call, Return, fail_if};

/// Bytes of `struct bpf_tunnel_key`.
const KEY: usize = 44;
/// Sizes of older forms of it; the first one is for IPv4.
const OLDER: [usize; 4] = [8, 22, 24, 28];
/// Offsets in it.
const REMOTE: usize = 4;
const TOS: usize = 20;
const TTL: usize = 21;
const EXT: usize = 22;
const LABEL: usize = 24;
const LOCAL: usize = 28;

/// Flags of the calls.
const IPV6: u64 = 1;
const ZERO_CSUM: u64 = 1 << 1;
const DONT_FRAGMENT: u64 = 1 << 2;
const SEQUENCE: u64 = 1 << 3;
/// The structure has flags in place of `tunnel_ext` (`BPF_F_TUNINFO_FLAGS`).
const WITH_FLAGS: u64 = 1 << 4;
const NO_KEY: u64 = 1 << 4;

/// `TUNNEL_` flags of the structure.
const TUNNEL_CSUM: u16 = 0x01;
const TUNNEL_KEY: u16 = 0x04;
const TUNNEL_SEQUENCE: u16 = 0x08;
const TUNNEL_DONT_FRAGMENT: u16 = 0x0100;
const TUNNEL_NO_CACHE: u16 = 0x2000;
/// Options are present: of Geneve, VXLAN, ERSPAN or GTP.
const TUNNEL_OPTIONS: u16 = 0xd800;

/// Most bytes of options.
const MOST_OPTIONS: usize = 255;

/// `long bpf_skb_set_tunnel_key(skb, struct bpf_tunnel_key *key, u32 size, u64 flags)`:
/// `-EINVAL` for unknown flags and sizes, and for fields that the flags do not allow.
pub(super) fn skb_set_tunnel_key<M: MemoryPort>(
    Call([context, key, size, flags, _], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    let known = IPV6 | ZERO_CSUM | DONT_FRAGMENT | SEQUENCE | NO_KEY;
    fail_if!(flags & !known != 0 || size != KEY && !OLDER.contains(&size) => Errno::EINVAL);
    let mut bytes = [0; KEY];
    memory.read(key, &mut bytes[..size])?;
    let word = |at: usize| {
        let mut word = [0; 4];
        word.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(word)
    };
    let is_ipv6 = flags & IPV6 != 0;
    fail_if!(!is_ipv6 && word(LABEL) != 0 || bytes[EXT..EXT + 2] != [0; 2] => Errno::EINVAL);
    let address = |at: usize| match is_ipv6 {
        true => [0, 4, 8, 12].map(|offset| word(at + offset)),
        false => [word(at), 0, 0, 0],
    };
    let mut tunnel_flags = TUNNEL_NO_CACHE;
    for (flag, is_set) in [
        (TUNNEL_KEY, flags & NO_KEY == 0),
        (TUNNEL_CSUM, flags & ZERO_CSUM == 0),
        (TUNNEL_DONT_FRAGMENT, flags & DONT_FRAGMENT != 0),
        (TUNNEL_SEQUENCE, flags & SEQUENCE != 0),
    ] {
        tunnel_flags |= if is_set { flag } else { 0 };
    }
    let tunnel = Tunnel {
        id: word(0),
        remote: address(REMOTE),
        local: address(LOCAL),
        tos: bytes[TOS],
        ttl: bytes[TTL],
        label: word(LABEL) & 0xf_ffff,
        is_ipv6,
        flags: tunnel_flags,
        options: Vec::new(),
    };
    memory.change_packet(context, |packet| packet.state.tunnel = Some(tunnel))?;
    Ok(0)
}

/// `long bpf_skb_get_tunnel_key(skb, struct bpf_tunnel_key *key, u32 size, u64 flags)`:
/// addresses as the receiver sees them, so that the local one of
/// [`skb_set_tunnel_key`] is the remote one. `-EINVAL` and zeros without a tunnel or for an
/// unknown size, `-EPROTO` for a tunnel of the other family.
pub(super) fn skb_get_tunnel_key<M: MemoryPort>(
    Call([context, to, size, flags, _], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    let is_ipv6 = flags & IPV6 != 0;
    let key = match &memory.packet(context)?.state.tunnel {
        Some(_) if flags & !(IPV6 | WITH_FLAGS) != 0 => Err(Errno::EINVAL),
        None => Err(Errno::EINVAL),
        Some(tunnel) if tunnel.is_ipv6 != is_ipv6 => Err(Errno::EPROTO),
        Some(_) if size != KEY && !OLDER.contains(&size) => Err(Errno::EINVAL),
        Some(tunnel) if size == OLDER[0] && tunnel.is_ipv6 => Err(Errno::EINVAL),
        Some(tunnel) => Ok(written(tunnel, flags & WITH_FLAGS != 0)),
    };
    match key {
        Ok(key) => {
            memory.write(to, &key[..size])?;
            Ok(0)
        }
        Err(errno) => {
            memory.write(to, Bytes::zeroed(size).get())?;
            Ok(errno.negated())
        }
    }
}

/// The structure that describes a tunnel.
fn written(tunnel: &Tunnel, has_flags: bool) -> [u8; KEY] {
    let mut key = [0; KEY];
    let mut put = |at: usize, value: u32| key[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(0, tunnel.id);
    for (number, (remote, local)) in tunnel.local.iter().zip(tunnel.remote).enumerate() {
        put(REMOTE + 4 * number, *remote);
        put(LOCAL + 4 * number, local);
    }
    put(LABEL, tunnel.label);
    (key[TOS], key[TTL]) = (tunnel.tos, tunnel.ttl);
    if has_flags {
        key[EXT..EXT + 2].copy_from_slice(&tunnel.flags.to_be_bytes());
    }
    key
}

/// `long bpf_skb_set_tunnel_opt(skb, void *options, u32 size)`: `-EINVAL` without a tunnel or
/// for a size that is no multiple of 4, `-ENOMEM` for more than 255 bytes.
pub(super) fn skb_set_tunnel_opt<M: MemoryPort>(
    Call([context, from, size, ..], memory, _): Call<M>,
) -> Return<M> {
    let size = size as u32 as usize;
    if memory.packet(context)?.state.tunnel.is_none() || !size.is_multiple_of(4) {
        return Ok(Errno::EINVAL.negated());
    }
    fail_if!(size > MOST_OPTIONS => Errno::ENOMEM);
    let options = Bytes::read(memory, from, size)?;
    memory.change_packet(context, |packet| {
        if let Some(tunnel) = &mut packet.state.tunnel {
            tunnel.options = options.get().to_vec();
            if size > 0 {
                tunnel.flags |= TUNNEL_OPTIONS;
            }
        }
    })?;
    Ok(0)
}

/// `long bpf_skb_get_tunnel_opt(skb, void *options, u32 size)`: bytes of the options;
/// `-ENOENT` without options, `-ENOMEM` if they do not fit, both with zeros.
pub(super) fn skb_get_tunnel_opt<M: MemoryPort>(
    Call([context, to, size, ..], memory, _): Call<M>,
) -> Return<M> {
    let mut bytes = Bytes::zeroed(size as u32 as usize);
    let tunnel = memory.packet(context)?.state.tunnel.as_ref();
    let options = tunnel.filter(|tunnel| tunnel.flags & TUNNEL_OPTIONS != 0);
    let result = match options.map(|tunnel| &tunnel.options) {
        None => Errno::ENOENT.negated(),
        Some(options) if options.len() > bytes.get().len() => Errno::ENOMEM.negated(),
        Some(options) => {
            bytes.get_mut()[..options.len()].copy_from_slice(options);
            options.len() as u64
        }
    };
    memory.write(to, bytes.get())?;
    Ok(result)
}
