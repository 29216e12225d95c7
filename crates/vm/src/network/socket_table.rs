//! The sockets of a network, and the memory in which programs read them.
//!
//! Each socket has [`Sockets::STRIDE`] bytes, in which the structures that programs read lie at
//! fixed offsets: a pointer to any of them tells the socket. Native code reads them in place,
//! the checked engine has a region for each.

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{NetSocket, SocketView, TcpFigures, XdpSocket};

/// Sockets, in the order in which they were bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    list: Vec<NetSocket>,
    /// [`Sockets::STRIDE`] bytes for each.
    memory: Vec<u64>,
    /// When each sent a SYN cookie last.
    cookies_sent: Vec<Sent>,
    /// AF_XDP sockets.
    xdp: Vec<XdpSocket>,
}

/// A time in nanoseconds, counted from 1; 0 for never.
#[derive(Debug, Default)]
struct Sent(AtomicU64);

impl Clone for Sent {
    fn clone(&self) -> Sent {
        Sent(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl PartialEq for Sent {
    fn eq(&self, other: &Sent) -> bool {
        self.0.load(Ordering::Relaxed) == other.0.load(Ordering::Relaxed)
    }
}

impl Eq for Sent {}

/// A structure of a socket that programs have pointers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketPart {
    /// `struct bpf_sock`.
    Socket,
    /// `struct bpf_tcp_sock`.
    Tcp,
    /// The socket as the kernel declares it, of which the host may describe members
    /// ([`Sockets::put`]). Programs that read it do not run as native code.
    Kernel,
}

/// The socket that a pointer refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRef {
    /// The one of that number among [`Sockets`].
    Numbered(usize),
    /// The one that the packet of the run belongs to.
    OfPacket,
}

impl SocketPart {
    const ALL: [(SocketPart, &'static str); 3] = [
        (SocketPart::Socket, "bpf_sock"),
        (SocketPart::Tcp, "bpf_tcp_sock"),
        (SocketPart::Kernel, "tcp_sock"),
    ];

    const fn offset(self) -> usize {
        match self {
            SocketPart::Socket => 0,
            SocketPart::Tcp => 128,
            SocketPart::Kernel => 256,
        }
    }

    const fn size(self) -> usize {
        match self {
            SocketPart::Socket => SocketView::SIZE,
            SocketPart::Tcp => TcpFigures::SIZE,
            SocketPart::Kernel => Sockets::STRIDE - SocketPart::Kernel.offset() - 64,
        }
    }
}

impl Sockets {
    /// Bytes of a socket.
    pub const STRIDE: usize = 4096;

    /// No sockets.
    pub const fn new() -> Sockets {
        Sockets {
            list: Vec::new(),
            memory: Vec::new(),
            cookies_sent: Vec::new(),
            xdp: Vec::new(),
        }
    }

    /// Adds a socket that was bound after the others. One without a cookie gets the first that
    /// is free.
    pub fn add(&mut self, mut socket: NetSocket) {
        if socket.cookie == 0 {
            socket.cookie = self.free_cookie();
        }
        let mut bytes = [0; Sockets::STRIDE];
        let mut put = |part: SocketPart, view: &[u8]| {
            bytes[part.offset()..part.offset() + view.len()].copy_from_slice(view);
        };
        put(SocketPart::Socket, &socket.view().0);
        put(SocketPart::Tcp, &socket.tcp.view());
        let words = bytes.as_chunks::<8>().0.iter();
        self.memory
            .extend(words.map(|word| u64::from_ne_bytes(*word)));
        self.cookies_sent.push(Sent::default());
        self.list.push(socket);
    }

    /// Adds an AF_XDP socket; its cookie.
    pub fn add_xdp(&mut self, mut socket: XdpSocket) -> u64 {
        if socket.cookie == 0 {
            socket.cookie = self.free_cookie();
        }
        self.xdp.push(socket);
        socket.cookie
    }

    /// The AF_XDP sockets.
    pub fn xdp(&self) -> &[XdpSocket] {
        &self.xdp
    }

    /// The AF_XDP socket of a cookie.
    pub fn xdp_by_cookie(&self, cookie: u64) -> Option<&XdpSocket> {
        self.xdp.iter().find(|socket| socket.cookie == cookie)
    }

    /// True if a socket has this cookie.
    pub fn has_cookie(&self, cookie: u64) -> bool {
        self.by_cookie(cookie).is_some() || self.xdp_by_cookie(cookie).is_some()
    }

    fn free_cookie(&self) -> u64 {
        (1..).find(|cookie| !self.has_cookie(*cookie)).unwrap_or(0)
    }

    /// Writes bytes into a structure of the socket of a number.
    ///
    /// # Panics
    /// If they do not lie in the structure.
    pub fn put(&mut self, number: usize, part: SocketPart, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= part.size(), "the structure is shorter");
        for (at, &byte) in (part.offset() + at..).zip(bytes) {
            let word = &mut self.memory[number * Sockets::STRIDE / 8 + at / 8];
            let mut own = word.to_ne_bytes();
            own[at % 8] = byte;
            *word = u64::from_ne_bytes(own);
        }
    }

    /// The sockets.
    pub fn list(&self) -> &[NetSocket] {
        &self.list
    }

    /// Notes that the socket of a number sent a SYN cookie at this time.
    pub fn note_cookie(&self, number: usize, nanoseconds: u64) {
        let time = nanoseconds.saturating_add(1);
        self.cookies_sent[number].0.store(time, Ordering::Relaxed);
    }

    /// The time at which the socket of a number sent a SYN cookie last.
    pub fn cookie_sent(&self, number: usize) -> Option<u64> {
        self.cookies_sent[number]
            .0
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }

    /// The number of the socket of a cookie.
    pub fn by_cookie(&self, cookie: u64) -> Option<usize> {
        self.list.iter().position(|socket| socket.cookie == cookie)
    }

    /// The address of a structure of the socket of a number, if the memory begins at `start`.
    pub fn pointer(start: u64, number: usize, part: SocketPart) -> u64 {
        start + (number * Sockets::STRIDE + part.offset()) as u64
    }

    /// The number of the socket that a pointer refers to, if the memory begins at `start`.
    pub fn number_of(&self, start: u64, pointer: u64) -> Option<usize> {
        let offset = usize::try_from(pointer.checked_sub(start)?).ok()?;
        let number = offset / Sockets::STRIDE;
        let is_part =
            (SocketPart::ALL.iter()).any(|(part, _)| offset % Sockets::STRIDE == part.offset());
        (number < self.list.len() && is_part).then_some(number)
    }

    /// Address of the memory, for native code.
    pub(crate) fn address(&self) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64
    }

    /// The structures of all sockets: name, offset in the memory, bytes.
    pub fn structures(&self) -> impl Iterator<Item = (String, usize, &[u8])> {
        let numbered = self
            .list
            .iter()
            .zip(self.memory.chunks(Sockets::STRIDE / 8));
        numbered.enumerate().flat_map(|(number, (socket, words))| {
            // SAFETY: words are initialised bytes.
            let bytes =
                unsafe { slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 8) };
            SocketPart::ALL.iter().map(move |(part, name)| {
                let name = format!("struct {name} of the socket of cookie {}", socket.cookie);
                let range = part.offset()..part.offset() + part.size();
                (
                    name,
                    number * Sockets::STRIDE + part.offset(),
                    &bytes[range],
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Sockets {
        let mut sockets = Sockets::new();
        let local = "192.0.2.1:80".parse().expect("an address");
        sockets.add(NetSocket {
            cookie: 1,
            ..NetSocket::listener(local)
        });
        sockets.add(NetSocket::udp(local));
        sockets
    }

    #[test]
    fn pointers_to_structures_tell_the_socket() {
        let sockets = two();
        for number in 0..2 {
            for (part, _) in SocketPart::ALL {
                let pointer = Sockets::pointer(0x1000, number, part);
                assert_eq!(sockets.number_of(0x1000, pointer), Some(number));
                assert_eq!(sockets.number_of(0x1000, pointer + 8), None);
            }
        }
        let behind = Sockets::pointer(0x1000, 2, SocketPart::Socket);
        assert_eq!(sockets.number_of(0x1000, behind), None);
        assert_eq!(sockets.number_of(0x1000, 0xfff), None);
    }

    #[test]
    fn sockets_of_all_kinds_have_cookies_of_their_own() {
        let mut sockets = two();
        assert_eq!(sockets.add_xdp(XdpSocket::default()), 3);
        sockets.add(NetSocket::udp("192.0.2.1:53".parse().expect("an address")));
        assert_eq!(sockets.by_cookie(4), Some(2));
        assert_eq!(sockets.by_cookie(3), None);
    }

    #[test]
    fn structures_have_what_is_put_into_them() {
        let mut sockets = two();
        assert_eq!(sockets.by_cookie(2), Some(1));
        sockets.put(1, SocketPart::Kernel, 5, &[7, 8]);
        let parts: Vec<_> = sockets.structures().collect();
        let (name, offset, bytes) = &parts[5];
        assert_eq!(name, "struct tcp_sock of the socket of cookie 2");
        assert_eq!((*offset, &bytes[4..8]), (4096 + 256, &[0, 7, 8, 0][..]));
        // The protocol.
        assert_eq!((parts[0].2[12], parts[3].2[12]), (6, 17));
    }
}
