//! SYN cookies: sequence numbers from which the acknowledgement of a handshake is recognised
//! without state (`net/ipv4/syncookies.c`, `net/ipv6/syncookies.c`).
//!
//! A cookie holds 8 bits of the minute and 24 bits of the number of a segment size, both
//! covered by keyed hashes (SipHash-2-4) of the connection.

use spec::{Errno, Result};
use vm::network::{NetSocket, SocketProtocol, SocketState, SynCookies};
use vm::{MemoryPort, RunContext};

use super::bytes::Bytes;
use super::socket_parts::{Found, found};
use crate::call::{Call, Return, fail_if};
use crate::lookups::siphash;

/// Bytes of a TCP header without options.
const TCP_HEADER: usize = 20;
/// Bits of a cookie below the minute.
const COOKIE_BITS: u32 = 24;
/// Minutes that a cookie is valid (`MAX_SYNCOOKIE_AGE`).
const MOST_AGE: u32 = 2;

/// A version of IP: where addresses are, and which segment sizes cookies tell.
struct Version {
    header: usize,
    addresses: std::ops::Range<usize>,
    sizes: [u16; 4],
    /// Segment size without the option.
    default: u16,
}

const IPV4: Version = Version {
    header: 20,
    addresses: 12..20,
    sizes: [536, 1300, 1440, 1460],
    default: 536,
};

const IPV6: Version = Version {
    header: 40,
    addresses: 8..40,
    sizes: [1220, 1420, 1440, 8940],
    default: 1220,
};

/// `long bpf_tcp_raw_gen_syncookie_ipv4(struct iphdr *iph, struct tcphdr *th, u32 th_len)`: the
/// cookie, and the segment size above it.
pub(super) fn tcp_raw_gen_syncookie_ipv4<M: MemoryPort>(call: Call<M>) -> Return<M> {
    generate(&IPV4, call)
}

/// `long bpf_tcp_raw_gen_syncookie_ipv6(…)`: as [`tcp_raw_gen_syncookie_ipv4`].
pub(super) fn tcp_raw_gen_syncookie_ipv6<M: MemoryPort>(call: Call<M>) -> Return<M> {
    generate(&IPV6, call)
}

/// `long bpf_tcp_raw_check_syncookie_ipv4(struct iphdr *iph, struct tcphdr *th)`: 0 if the
/// segment acknowledges a cookie, otherwise `-EACCES`.
pub(super) fn tcp_raw_check_syncookie_ipv4<M: MemoryPort>(call: Call<M>) -> Return<M> {
    check_cookie(&IPV4, call)
}

/// `long bpf_tcp_raw_check_syncookie_ipv6(…)`: as [`tcp_raw_check_syncookie_ipv4`].
pub(super) fn tcp_raw_check_syncookie_ipv6<M: MemoryPort>(call: Call<M>) -> Return<M> {
    check_cookie(&IPV6, call)
}

/// `s64 bpf_tcp_gen_syncookie(void *sk, void *iph, u32 iph_len, struct tcphdr *th, u32 th_len)`:
/// the cookie with which a socket answers a segment, and the segment size above it. `-EINVAL` for
/// what is no request or no socket that waits for connections, `-ENOENT` unless the network
/// always sends cookies, `-EPROTONOSUPPORT` for other protocols than IP.
pub(super) fn tcp_gen_syncookie<M: MemoryPort>(
    Call([socket, ip, ip_len, tcp, tcp_len], memory, cx): Call<M>,
) -> Return<M> {
    let [ip_len, tcp_len] = [ip_len, tcp_len].map(|len| len as u32 as usize);
    let network = &cx.system.network;
    let (ip_bytes, segment) = headers(memory, [ip, tcp], [ip_len, tcp_len])?;
    let (ip_bytes, segment) = (ip_bytes.get(), segment.get());
    let Found::Numbered(number, socket) = found(socket, memory, &network.sockets)? else {
        return Ok(Errno::EINVAL.negated());
    };
    if segment.len() < TCP_HEADER || segment.len() != usize::from(segment[12] >> 4) * 4 {
        return Ok(Errno::EINVAL.negated());
    }
    fail_if!(!is_listener(socket) => Errno::EINVAL);
    fail_if!(network.syncookies == SynCookies::Never => Errno::ENOENT);
    fail_if!(segment[13] & (SYN | ACK | FIN | RST) != SYN => Errno::EINVAL);
    let version = match version(socket, ip_bytes) {
        Ok(version) => version,
        Err(errno) => return Ok(errno.negated()),
    };
    fail_if!(network.syncookies != SynCookies::Always => Errno::ENOENT);
    let now = cx.nanoseconds();
    network.sockets.note_cookie(number, now);
    let arguments = [ip, tcp, tcp_len as u64, 0, 0];
    generate(version, Call(arguments, memory, cx))
}

/// `long bpf_tcp_check_syncookie(void *sk, void *iph, u32 iph_len, struct tcphdr *th, u32
/// th_len)`: 0 if a segment acknowledges a cookie of the socket, `-ENOENT` if not; other errors as
/// those of [`tcp_gen_syncookie`].
pub(super) fn tcp_check_syncookie<M: MemoryPort>(
    Call([socket, ip, ip_len, tcp, tcp_len], memory, cx): Call<M>,
) -> Return<M> {
    let [ip_len, tcp_len] = [ip_len, tcp_len].map(|len| len as u32 as usize);
    let network = &cx.system.network;
    let (ip_bytes, segment) = headers(memory, [ip, tcp], [ip_len, tcp_len])?;
    let (ip_bytes, segment) = (ip_bytes.get(), segment.get());
    let Found::Numbered(number, socket) = found(socket, memory, &network.sockets)? else {
        return Ok(Errno::EINVAL.negated());
    };
    let takes_cookies = is_listener(socket) && network.syncookies != SynCookies::Never;
    fail_if!(segment.len() < TCP_HEADER || !takes_cookies => Errno::EINVAL);
    fail_if!(segment[13] & (SYN | ACK | RST) != ACK => Errno::ENOENT);
    fail_if!(ip_bytes.len() < IPV4.header => Errno::EINVAL);
    let sent = network.sockets.cookie_sent(number);
    let now = cx.nanoseconds();
    let is_recent = |sent: u64| now.saturating_sub(sent) <= VALID;
    fail_if!(!sent.is_some_and(is_recent) => Errno::ENOENT);
    let version = match version(socket, ip_bytes) {
        Ok(version) => version,
        Err(errno) => return Ok(errno.negated()),
    };
    Ok(
        match check_cookie(version, Call([ip, tcp, 0, 0, 0], memory, cx))? {
            0 => 0,
            _ => Errno::ENOENT.negated(),
        },
    )
}

/// Flags of TCP headers.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Nanoseconds for which a socket takes cookies after it sent one.
const VALID: u64 = MOST_AGE as u64 * 60 * 1_000_000_000;

/// The headers of a packet.
fn headers<M: MemoryPort>(
    memory: &M,
    [ip, tcp]: [u64; 2],
    [ip_len, tcp_len]: [usize; 2],
) -> Result<(Bytes, Bytes), M::Fault> {
    Ok((
        Bytes::read(memory, ip, ip_len)?,
        Bytes::read(memory, tcp, tcp_len)?,
    ))
}

fn is_listener(socket: &NetSocket) -> bool {
    socket.protocol == SocketProtocol::Tcp && socket.state == SocketState::Listen
}

/// The version of IP of a header that a socket takes.
fn version(socket: &NetSocket, header: &[u8]) -> Result<&'static Version> {
    match header.first().map(|first| first >> 4) {
        _ if header.len() < IPV4.header => Err(Errno::EINVAL),
        Some(4) if !socket.takes_ipv4() => Err(Errno::EINVAL),
        Some(4) => Ok(&IPV4),
        Some(6) if header.len() < IPV6.header || !socket.is_ipv6() => Err(Errno::EINVAL),
        Some(6) => Ok(&IPV6),
        _ => Err(Errno::EPROTONOSUPPORT),
    }
}

fn generate<M: MemoryPort>(
    version: &Version,
    Call([ip, tcp, len, ..], memory, cx): Call<M>,
) -> Return<M> {
    let len = len as u32 as usize;
    fail_if!(len < TCP_HEADER => Errno::EINVAL);
    let segment = Bytes::read(memory, tcp, len)?;
    let segment = segment.get();
    fail_if!(len != usize::from(segment[12] >> 4) * 4 => Errno::EINVAL);
    let wanted = match segment_size(&segment[TCP_HEADER..]) {
        0 => version.default,
        size => size,
    };
    let fits = |size: &u16| wanted >= *size;
    let index = version.sizes.iter().rposition(fits).unwrap_or(0);
    let connection = connection(version, ip, segment, memory)?;
    let minute = minute(cx);
    let cookie = hash(cx, &connection, 0, 0)
        .wrapping_add(word(segment, 4))
        .wrapping_add(minute << COOKIE_BITS)
        .wrapping_add(low(
            hash(cx, &connection, minute, 1).wrapping_add(index as u32)
        ));
    Ok(u64::from(version.sizes[index]) << 32 | u64::from(cookie))
}

fn check_cookie<M: MemoryPort>(
    version: &Version,
    Call([ip, tcp, ..], memory, cx): Call<M>,
) -> Return<M> {
    let segment = Bytes::read(memory, tcp, TCP_HEADER)?;
    let segment = segment.get();
    let connection = connection(version, ip, segment, memory)?;
    let sequence = word(segment, 4).wrapping_sub(1);
    let cookie = (word(segment, 8).wrapping_sub(1))
        .wrapping_sub(hash(cx, &connection, 0, 0))
        .wrapping_sub(sequence);
    let minute = minute(cx);
    let age = minute.wrapping_sub(cookie >> COOKIE_BITS) & (u32::MAX >> COOKIE_BITS);
    let is_valid = age < MOST_AGE && {
        let hash = hash(cx, &connection, minute.wrapping_sub(age), 1);
        (low(cookie.wrapping_sub(hash)) as usize) < version.sizes.len()
    };
    Ok(match is_valid {
        true => 0,
        false => Errno::EACCES.negated(),
    })
}

/// The segment size in the options of a TCP header; 0 without the option.
fn segment_size(mut options: &[u8]) -> u16 {
    const END: u8 = 0;
    const PADDING: u8 = 1;
    const SIZE: u8 = 2;
    let mut size = 0;
    loop {
        match *options {
            [] | [END, ..] => return size,
            [PADDING, ref rest @ ..] => options = rest,
            [kind, len, ..] if len >= 2 && usize::from(len) <= options.len() => {
                let (option, rest) = options.split_at(len.into());
                if let (SIZE, [_, _, high, low]) = (kind, option)
                    && [*high, *low] != [0, 0]
                {
                    size = u16::from_be_bytes([*high, *low]);
                }
                options = rest;
            }
            _ => return size,
        }
    }
}

/// Addresses and ports of a segment.
fn connection<M: MemoryPort>(
    version: &Version,
    ip: u64,
    segment: &[u8],
    memory: &M,
) -> Result<Vec<u8>, M::Fault> {
    let header = Bytes::read(memory, ip, version.header)?;
    let mut connection = header.get()[version.addresses.clone()].to_vec();
    connection.extend(&segment[..4]);
    Ok(connection)
}

/// The minute of the clock's timer ticks.
fn minute(cx: &mut RunContext<'_>) -> u32 {
    let now = cx.nanoseconds();
    (cx.system.jiffies(now) / (60 * u64::from(cx.system.hz.max(1)))) as u32
}

/// The big-endian word at an offset.
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

fn low(value: u32) -> u32 {
    value & (u32::MAX >> (32 - COOKIE_BITS))
}

/// The low half of the hash of a connection and a count by one of two secrets.
fn hash(cx: &RunContext<'_>, connection: &[u8], count: u32, secret: usize) -> u32 {
    let mut bytes = connection.to_vec();
    bytes.extend(count.to_le_bytes());
    siphash(&bytes, cx.system.syncookie_secrets[secret]) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_sizes_stand_in_options() {
        for (options, size) in [
            (&[][..], 0),
            (&[2, 4, 5, 0xb4], 1460),
            (&[1, 1, 2, 4, 1, 0, 0, 2], 256),
            (&[0, 2, 4, 1, 0], 0),
            (&[3, 3, 7, 2, 4, 1, 1], 257),
            (&[2, 4, 1, 0, 2, 4, 0, 0], 256),
            (&[8, 9, 2, 4, 1, 0], 0),
            (&[8, 1, 2, 4, 1, 0], 0),
            (&[2, 4, 1], 0),
        ] {
            assert_eq!(segment_size(options), size, "{options:?}");
        }
    }
}
