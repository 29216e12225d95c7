//! TCP and UDP sockets whose options are set before they are bound.

use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::Errno;

/// A TCP or UDP socket.
#[derive(Debug)]
pub struct InetSocket(OwnedFd);

/// An option with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InetOption {
    /// `SO_REUSEADDR`.
    ReuseAddress,
    /// `SO_REUSEPORT`.
    ReusePort,
    /// `SO_MARK`.
    Mark,
    /// `SO_PRIORITY`.
    Priority,
    /// `SO_BINDTOIFINDEX`: index of a device.
    Device,
    /// `SO_INCOMING_CPU`.
    IncomingCpu,
    /// `IPV6_V6ONLY`.
    Ipv6Only,
}

impl InetOption {
    fn number(self) -> (libc::c_int, libc::c_int) {
        /// `SO_BINDTOIFINDEX` (include/uapi/asm-generic/socket.h).
        const BIND_TO_IFINDEX: libc::c_int = 62;
        match self {
            InetOption::ReuseAddress => (libc::SOL_SOCKET, libc::SO_REUSEADDR),
            InetOption::ReusePort => (libc::SOL_SOCKET, libc::SO_REUSEPORT),
            InetOption::Mark => (libc::SOL_SOCKET, libc::SO_MARK),
            InetOption::Priority => (libc::SOL_SOCKET, libc::SO_PRIORITY),
            InetOption::Device => (libc::SOL_SOCKET, BIND_TO_IFINDEX),
            InetOption::IncomingCpu => (libc::SOL_SOCKET, libc::SO_INCOMING_CPU),
            InetOption::Ipv6Only => (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
        }
    }
}

impl InetSocket {
    /// A new socket of IPv6 or IPv4, of TCP or UDP.
    pub fn new(is_ipv6: bool, is_tcp: bool) -> Result<InetSocket, Errno> {
        let family = if is_ipv6 {
            libc::AF_INET6
        } else {
            libc::AF_INET
        };
        let kind = if is_tcp {
            libc::SOCK_STREAM
        } else {
            libc::SOCK_DGRAM
        };
        // SAFETY: socket takes no pointers.
        let fd = Errno::check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: socket just made the descriptor, and nothing else owns it.
        Ok(InetSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets an option.
    pub fn set(&self, option: InetOption, value: u32) -> Result<(), Errno> {
        let (level, name) = option.number();
        // SAFETY: the value is an int and its size is given; the kernel only reads.
        Errno::check(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                size_of::<u32>() as u32,
            )
        })?;
        Ok(())
    }

    /// Binds it to an address and a port.
    pub fn bind(&self, address: SocketAddr) -> Result<(), Errno> {
        let (address, len) = raw(address);
        // SAFETY: the address has at least so many bytes; the kernel only reads.
        let bound = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        Errno::check(bound).map(drop)
    }

    /// Connects it.
    pub fn connect(&self, address: SocketAddr) -> Result<(), Errno> {
        let (address, len) = raw(address);
        // SAFETY: as in `bind`.
        let made = unsafe { libc::connect(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        Errno::check(made).map(drop)
    }

    /// Has a TCP socket wait for connections.
    pub fn listen(&self) -> Result<(), Errno> {
        // SAFETY: listen takes no pointers.
        Errno::check(unsafe { libc::listen(self.0.as_raw_fd(), 16) }).map(drop)
    }

    /// The next connection of a TCP socket that waits for them.
    pub fn accept(&self) -> Result<InetSocket, Errno> {
        let (none, no_len) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: without an address the kernel writes none.
        let fd = Errno::check(unsafe {
            libc::accept4(self.0.as_raw_fd(), none, no_len, libc::SOCK_CLOEXEC)
        })?;
        // SAFETY: accept just made the descriptor, and nothing else owns it.
        Ok(InetSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Its cookie (`SO_COOKIE`).
    pub fn cookie(&self) -> Result<u64, Errno> {
        let mut cookie = [0; 8];
        self.get(libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
        Ok(u64::from_ne_bytes(cookie))
    }

    /// The bytes of `struct tcp_info` that the kernel has of a TCP socket.
    pub fn tcp_info(&self) -> Result<Vec<u8>, Errno> {
        let mut info = vec![0; 512];
        let len = self.get(libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
        info.truncate(len);
        Ok(info)
    }

    fn get(&self, level: libc::c_int, name: libc::c_int, out: &mut [u8]) -> Result<usize, Errno> {
        let mut len = out.len() as libc::socklen_t;
        // SAFETY: pointer and length are those of a writable slice.
        Errno::check(unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                level,
                name,
                out.as_mut_ptr().cast(),
                &raw mut len,
            )
        })?;
        Ok(len as usize)
    }
}

impl AsRawFd for InetSocket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

/// An address as system calls take it, with its length.
fn raw(address: SocketAddr) -> (libc::sockaddr_in6, libc::socklen_t) {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut raw: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    match address {
        SocketAddr::V6(address) => {
            raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            raw.sin6_port = address.port().to_be();
            raw.sin6_addr.s6_addr = address.ip().octets();
            (raw, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
        SocketAddr::V4(address) => {
            // `struct sockaddr_in` has family and port in the same places, then the address.
            raw.sin6_family = libc::AF_INET as libc::sa_family_t;
            raw.sin6_port = address.port().to_be();
            raw.sin6_flowinfo = u32::from_ne_bytes(address.ip().octets());
            (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
    }
}
