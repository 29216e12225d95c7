//! Model sockets, and what maps of sockets have in common.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spec::{Errno, Result};
use vm::network::{NetSocket, SocketProtocol, SocketState, XdpSocket};

use super::resources::Resources;

/// A socket, as maps see it.
#[derive(Debug)]
pub struct Socket {
    /// Its cookie, which lookups return.
    pub cookie: u64,
    /// Its kind.
    pub kind: SocketKind,
    /// It shares its port with the sockets of a group (`SO_REUSEPORT`).
    pub is_in_group: bool,
    /// A `reuseport_sockarray` holds it.
    pub(super) is_in_array: AtomicBool,
}

/// Protocol and state of a socket, as far as maps distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// TCP; listens or is connected.
    TcpOpen,
    /// TCP; neither.
    TcpClosed,
    /// UDP.
    Udp,
    /// A Unix datagram socket, or a connected stream.
    Unix,
    /// A Unix stream that is not connected.
    UnixClosed,
    /// AF_XDP, on this queue of its device; 0 if it is not bound.
    Xdp(u16),
    /// Any other, which no map of sockets takes.
    Other,
}

impl Socket {
    /// A socket that is in no map.
    pub fn new(cookie: u64, kind: SocketKind, is_in_group: bool) -> Socket {
        Socket {
            cookie,
            kind,
            is_in_group,
            is_in_array: AtomicBool::new(false),
        }
    }

    /// A socket of a network, as maps see it.
    pub fn of(socket: &NetSocket) -> Socket {
        let kind = match (socket.protocol, socket.state) {
            (SocketProtocol::Udp, _) => SocketKind::Udp,
            (
                SocketProtocol::Tcp,
                SocketState::Established | SocketState::Listen | SocketState::SynRecv,
            ) => SocketKind::TcpOpen,
            (SocketProtocol::Tcp, _) => SocketKind::TcpClosed,
        };
        Socket::new(socket.cookie, kind, socket.group.is_some())
    }

    /// An AF_XDP socket of a network, as maps see it.
    pub fn from_xdp(socket: &XdpSocket) -> Socket {
        let queue = socket.queue.map_or(0, |bound| bound.queue);
        Socket::new(socket.cookie, SocketKind::Xdp(queue), false)
    }

    /// True if a `sockmap` or `sockhash` takes it.
    fn is_redirectable(&self) -> bool {
        match self.kind {
            SocketKind::TcpOpen | SocketKind::Udp | SocketKind::Unix => true,
            SocketKind::TcpClosed
            | SocketKind::UnixClosed
            | SocketKind::Xdp(_)
            | SocketKind::Other => false,
        }
    }
}

/// The socket of a descriptor. EBADF if nothing is open there, ENOTSOCK if it is no socket.
pub(super) fn find(descriptor: u32, resources: &dyn Resources) -> Result<Arc<Socket>> {
    match resources.socket(descriptor) {
        Some(socket) => Ok(socket),
        None if resources.is_open(descriptor) => Err(Errno::ENOTSOCK),
        None => Err(Errno::EBADF),
    }
}

/// The descriptor that a value of 8 bytes holds. EINVAL for numbers that no descriptor has.
pub(super) fn descriptor_of_8(value: [u8; 8]) -> Result<u32> {
    let number = i32::try_from(u64::from_le_bytes(value)).map_err(|_| Errno::EINVAL)?;
    Ok(number as u32)
}

/// The socket whose descriptor a value of a `sockmap` or `sockhash` holds, if such maps take
/// it. Errors of [`find`]; EINVAL for numbers that no descriptor has, EOPNOTSUPP for other
/// sockets.
pub(super) fn find_redirectable(value: &[u8], resources: &dyn Resources) -> Result<Arc<Socket>> {
    let mut number = [0; 8];
    let bytes = number.get_mut(..value.len()).ok_or(Errno::EINVAL)?;
    bytes.copy_from_slice(value);
    let socket = find(descriptor_of_8(number)?, resources)?;
    match socket.is_redirectable() {
        true => Ok(socket),
        false => Err(Errno::EOPNOTSUPP),
    }
}

/// The socket of a network that a program puts into a map, if such maps take it. EINVAL for
/// what is no whole socket, EOPNOTSUPP for other sockets.
pub(super) fn given_by_program(socket: &NetSocket) -> Result<Arc<Socket>> {
    Errno::EINVAL.when(!socket.is_whole())?;
    let socket = Socket::of(socket);
    match socket.is_redirectable() {
        true => Ok(Arc::new(socket)),
        false => Err(Errno::EOPNOTSUPP),
    }
}

/// Writes the cookie of a socket, as bpf(2) reads it. ENOSPC if values have 4 bytes, ENOENT
/// without a socket.
pub(super) fn read_cookie(out: &mut [u8], socket: impl FnOnce() -> Option<Arc<Socket>>) -> Result {
    Errno::ENOSPC.when(out.len() != 8)?;
    let socket = socket().ok_or(Errno::ENOENT)?;
    out.copy_from_slice(&socket.cookie.to_le_bytes());
    Ok(())
}
