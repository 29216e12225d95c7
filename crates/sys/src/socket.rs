//! Sockets with a classic filter on them: an AF_UNIX pair, which needs no
//! privilege, and packet sockets on a device.

use crate::Errno;
use isa::classic::SockFilter;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Two connected AF_UNIX datagram sockets; the receiving one may have a filter.
#[derive(Debug)]
pub struct DatagramPair {
    sender: OwnedFd,
    receiver: OwnedFd,
}

impl DatagramPair {
    /// Creates a pair for datagrams of up to `largest` bytes.
    pub fn new(largest: usize) -> Result<DatagramPair, Errno> {
        let mut fds: [RawFd; 2] = [-1; 2];
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: `fds` is an array of two descriptors, as socketpair requires.
        Errno::check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) })?;
        // SAFETY: socketpair just made both descriptors, and nothing else owns them.
        let (sender, receiver) =
            unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) };
        // Twice the payload covers the kernel's bookkeeping.
        let room = (largest * 2).max(1 << 16) as libc::c_int;
        if set_int(&sender, libc::SO_SNDBUFFORCE, room).is_err() {
            set_int(&sender, libc::SO_SNDBUF, room)?;
        }
        Ok(DatagramPair { sender, receiver })
    }

    /// Attaches a filter to the receiving end.
    pub fn attach(&self, program: &[SockFilter]) -> Result<(), Errno> {
        attach(&self.receiver, program)
    }

    /// Detaches the filter.
    pub fn detach(&self) -> Result<(), Errno> {
        set_int(&self.receiver, libc::SO_DETACH_FILTER, 0)
    }

    /// Sends one datagram and receives it into `received`; returns its length, `None` if
    /// the filter dropped it.
    pub fn pass(&self, datagram: &[u8], received: &mut [u8]) -> Result<Option<usize>, Errno> {
        send(&self.sender, datagram)?;
        receive(&self.receiver, received)
    }
}

/// Layer at which a packet socket delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketLayer {
    /// Whole frames (SOCK_RAW).
    Link,
    /// Packets without the link-layer header (SOCK_DGRAM).
    Network,
}

/// A packet socket that receives from one device.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
}

impl PacketSocket {
    /// Opens a packet socket for every protocol. Needs CAP_NET_RAW.
    pub fn open(ifindex: u32, layer: PacketLayer) -> Result<PacketSocket, Errno> {
        const EVERY_PROTOCOL: u16 = (libc::ETH_P_ALL as u16).to_be();
        let kind = match layer {
            PacketLayer::Link => libc::SOCK_RAW,
            PacketLayer::Network => libc::SOCK_DGRAM,
        };
        let kind = kind | libc::SOCK_CLOEXEC;
        // Protocol 0 receives nothing until bind names a device.
        // SAFETY: socket takes no pointers.
        let fd = Errno::check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: socket just made the descriptor, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = EVERY_PROTOCOL;
        address.sll_ifindex = ifindex as i32;
        // SAFETY: the address is a sockaddr_ll and its size is given.
        Errno::check(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        })?;
        Ok(PacketSocket { socket })
    }

    /// Attaches a filter.
    pub fn attach(&self, program: &[SockFilter]) -> Result<(), Errno> {
        attach(&self.socket, program)
    }

    /// Sets the firewall mark (SO_MARK) of sent packets.
    pub fn set_mark(&self, mark: u32) -> Result<(), Errno> {
        set_int(&self.socket, libc::SO_MARK, mark as libc::c_int)
    }

    /// Sends one frame out of the device.
    pub fn send(&self, frame: &[u8]) -> Result<(), Errno> {
        send(&self.socket, frame)
    }

    /// Receives one packet into `received`; returns its length, `None` if there is none.
    pub fn receive(&self, received: &mut [u8]) -> Result<Option<usize>, Errno> {
        receive(&self.socket, received)
    }
}

fn attach(socket: &OwnedFd, program: &[SockFilter]) -> Result<(), Errno> {
    // The length has 16 bits; the kernel rejects programs longer than 4,096.
    let len = u16::try_from(program.len()).map_err(|_| Errno(libc::EINVAL))?;
    let request = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `SockFilter` has the layout of struct sock_filter (repr(C), same
    // fields), `request` names `len` of them, and the kernel only reads.
    Errno::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const request).cast(),
            size_of::<libc::sock_fprog>() as u32,
        )
    })?;
    Ok(())
}

fn set_int(socket: &OwnedFd, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    // SAFETY: the value is an int and its size is given; the kernel only reads.
    Errno::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as u32,
        )
    })?;
    Ok(())
}

/// The process at the other end of a connected AF_UNIX socket, or the one that listens there
/// (SO_PEERCRED).
pub fn peer(socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: pointer and size are those of a writable local.
    Errno::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    })?;
    Ok(Peer {
        process: peer.pid as u32,
        user: peer.uid,
    })
}

/// A process with its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id; 0 if it is in a namespace that this process does not see.
    pub process: u32,
    /// Its effective user.
    pub user: u32,
}

fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    // SAFETY: pointer and length are those of a slice that the kernel only reads.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    Errno::check_len(sent)?;
    Ok(())
}

fn receive(socket: &OwnedFd, bytes: &mut [u8]) -> Result<Option<usize>, Errno> {
    // SAFETY: pointer and length are those of a writable slice.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            bytes.as_mut_ptr().cast(),
            bytes.len(),
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
        )
    };
    match Errno::check_len(received) {
        Ok(len) => Ok(Some(len)),
        Err(Errno(libc::EAGAIN)) => Ok(None),
        Err(errno) => Err(errno),
    }
}
