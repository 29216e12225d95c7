//! Sockets as the kernel declares them: `struct tcp_sock` and the structures in it, in which the
//! members that the network describes are set, the others are zero.

use btf::{Btf, Kind};
use vm::network::{NetSocket, SocketPart, SocketView, Sockets, TcpFigures};

use super::task::member_of;

/// Most structures in structures on the way to a member.
const MOST_DEPTH: u32 = 8;

/// Members of sockets by their structures, with the places of their values in `struct bpf_sock`.
const MEMBERS: &[(&str, &str, usize)] = &[
    ("sock_common", "skc_family", SocketView::FAMILY),
    ("sock_common", "skc_state", SocketView::STATE),
    ("sock_common", "skc_num", SocketView::LOCAL_PORT),
    ("sock_common", "skc_dport", SocketView::REMOTE_PORT),
    ("sock_common", "skc_rcv_saddr", SocketView::LOCAL_IPV4),
    ("sock_common", "skc_daddr", SocketView::REMOTE_IPV4),
    ("sock_common", "skc_v6_rcv_saddr", SocketView::LOCAL_IPV6),
    ("sock_common", "skc_v6_daddr", SocketView::REMOTE_IPV6),
    ("sock_common", "skc_bound_dev_if", SocketView::DEVICE),
    ("sock", "sk_protocol", SocketView::PROTOCOL),
    ("sock", "sk_type", SocketView::TYPE),
    ("sock", "sk_mark", SocketView::MARK),
    ("sock", "sk_priority", SocketView::PRIORITY),
];

/// Structures in which figures of TCP are.
const WITH_FIGURES: [&str; 2] = ["tcp_sock", "inet_connection_sock"];

/// Destination of a value from a structure that programs see.
#[derive(Clone, Copy, Debug)]
struct Move {
    from: usize,
    to: usize,
    size: usize,
    /// Only whole sockets have the member.
    of_whole: bool,
}

/// The members that the kernel's structures have.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketLayout {
    cookie: Option<usize>,
    uid: Option<usize>,
    fields: Vec<Move>,
    figures: Vec<Move>,
}

impl SocketLayout {
    /// That of a kernel's types.
    pub(super) fn of(types: &Btf<'_>) -> SocketLayout {
        let member = |structure: &str, name: &str| {
            let structure = types.find(Kind::Struct, structure)?;
            member_of(types, structure, name, MOST_DEPTH)
        };
        let fields = MEMBERS.iter().filter_map(|&(structure, name, from)| {
            let (to, size) = member(structure, name)?;
            let of_whole = structure == "sock";
            Some(Move {
                from,
                to,
                size,
                of_whole,
            })
        });
        let figures = TcpFigures::places().filter_map(|(name, from, most)| {
            let mut structures = WITH_FIGURES.iter();
            let (to, size) = structures.find_map(|structure| member(structure, name))?;
            (size <= most).then_some(Move {
                from,
                to,
                size,
                of_whole: true,
            })
        });
        SocketLayout {
            cookie: member("sock_common", "skc_cookie").map(|(offset, _)| offset),
            uid: member("sock", "sk_uid").map(|(offset, _)| offset),
            fields: fields.collect(),
            figures: figures.collect(),
        }
    }

    /// Describes the sockets of a network in the kernel's structures.
    pub(super) fn describe(&self, sockets: &mut Sockets) {
        for number in 0..sockets.list().len() {
            let socket = sockets.list()[number].clone();
            self.describe_one(&socket, |at, bytes| {
                sockets.put(number, SocketPart::Kernel, at, bytes);
            });
        }
    }

    fn describe_one(&self, socket: &NetSocket, mut put: impl FnMut(usize, &[u8])) {
        let (view, figures) = (socket.view(), socket.tcp.view());
        let mut copy = |moves: &[Move], from: &[u8]| {
            for it in moves.iter().filter(|it| socket.is_whole() || !it.of_whole) {
                put(it.to, &from[it.from..it.from + it.size]);
            }
        };
        copy(&self.fields, &view.0);
        copy(&self.figures, &figures);
        if let Some(at) = self.cookie {
            put(at, &socket.cookie.to_le_bytes());
        }
        if let Some(at) = self.uid.filter(|_| socket.is_whole()) {
            put(at, &socket.uid.to_le_bytes());
        }
    }
}
