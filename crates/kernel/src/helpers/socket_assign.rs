//! `bpf_sk_assign`: the socket that a packet, or a lookup, is to have.

use spec::{Errno, Result};
use vm::MemoryPort;
use vm::network::{AF_INET, SocketPart, SocketProtocol, SocketState, Sockets};

use super::skb::{get, set};
use super::socket_parts::{Found, found, pointer};
use crate::call::{Call, Return};
use crate::programs::lookup_field::{FAMILY, NO_REUSEPORT, PROTOCOL, SELECTED, SOCKET};

/// `BPF_SK_LOOKUP_F_REPLACE`, `BPF_SK_LOOKUP_F_NO_REUSEPORT`.
const REPLACE: u64 = 1;
const ALONE: u64 = 2;

/// `long bpf_sk_assign(ctx, void *sk, u64 flags)`.
///
/// For programs of tc `-EOPNOTSUPP`: the packet of a test run is not on its way in; `-EINVAL`
/// for null and for flags. For those of sk_lookup the socket becomes the result of the lookup.
pub(super) fn sk_assign<M: MemoryPort>(
    Call([context, socket, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    let sockets = &cx.system.network.sockets;
    if memory.has_packet(context) {
        let socket = found(socket, memory, sockets)?;
        let is_wrong = matches!(socket, Found::Nothing) || flags != 0;
        return Ok(match is_wrong {
            true => Errno::EINVAL.negated(),
            false => Errno::EOPNOTSUPP.negated(),
        });
    }
    let chosen = choose([context, socket, flags], memory, sockets)?;
    Ok(match chosen {
        Ok(()) => 0,
        Err(errno) => errno.negated(),
    })
}

/// Makes a socket the result of a lookup.
fn choose<M: MemoryPort>(
    [context, socket, flags]: [u64; 3],
    memory: &mut M,
    sockets: &Sockets,
) -> Result<Result, M::Fault> {
    let found = found(socket, memory, sockets)?;
    if flags & !(REPLACE | ALONE) != 0 {
        return Ok(Err(Errno::EINVAL));
    }
    if let Found::Numbered(_, socket) = &found {
        let takes_packets = match socket.protocol {
            SocketProtocol::Tcp => socket.state == SocketState::Listen,
            SocketProtocol::Udp => socket.state == SocketState::Close,
        };
        let family = get(memory, context, FAMILY)?;
        if !takes_packets {
            return Ok(Err(Errno::ESOCKTNOSUPPORT));
        }
        if get(memory, context, PROTOCOL)? != socket.protocol.number() {
            return Ok(Err(Errno::EPROTOTYPE));
        }
        let takes = match family {
            AF_INET => socket.takes_ipv4(),
            _ => socket.is_ipv6(),
        };
        if !takes {
            return Ok(Err(Errno::EAFNOSUPPORT));
        }
    }
    let is_selected = get(memory, context, SELECTED)? & !NO_REUSEPORT != 0;
    if is_selected && flags & REPLACE == 0 {
        return Ok(Err(Errno::EEXIST));
    }
    let (address, selected) = match found {
        Found::Numbered(number, _) => (
            pointer(number, SocketPart::Socket, memory, sockets),
            number as u32 + 1,
        ),
        Found::Nothing | Found::OfPacket => (0, 0),
    };
    let alone = if flags & ALONE != 0 { NO_REUSEPORT } else { 0 };
    memory.write(memory.field(context, SOCKET), &address.to_le_bytes())?;
    set(memory, context, SELECTED, selected | alone)?;
    Ok(Ok(()))
}
