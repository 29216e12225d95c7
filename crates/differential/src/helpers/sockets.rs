//! Families of helpers that find sockets, among random real ones: bound and connected ones of TCP
//! and UDP over IPv4 and IPv6, bound to devices, sharing ports.

mod network;
mod uses;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

use super::Family;
use super::case::{Case, bytes_at};
use spec::programs::ProgramType;
use testkit::ebpf::Choices;

pub(super) use network::fill;
use network::network_of_sockets;

pub(super) const FAMILIES: &[Family] = &[
    Family {
        network: Some(network_of_sockets),
        ..Family::new("lookups of sockets", lookups)
    },
    Family {
        network: Some(network::network_of_namespaces),
        ..Family::new("lookups of sockets in namespaces", in_namespaces)
    },
    Family::new("sockets of packets", of_packets),
    Family {
        network: Some(network_of_sockets),
        ..Family::new("sockets in maps", uses::maps)
    },
    Family {
        network: Some(network_of_sockets),
        ..Family::new("selections of sockets", uses::selections)
    },
    Family {
        network: Some(network_of_sockets),
        ..Family::new("storage of sockets", uses::storage)
    },
    Family {
        network: Some(network_of_sockets),
        ..Family::new("SYN cookies of sockets", uses::cookies)
    },
];

/// Devices of the namespace: the loopback device and a pair.
const DEVICES: [u32; 3] = [1, 2, 3];

const PORTS: [u16; 4] = [80, 81, 4000, 4001];

fn address(choices: &mut Choices<'_>, is_ipv6: bool) -> IpAddr {
    let text = match is_ipv6 {
        false => choices.pick(&["127.0.0.1", "127.0.0.6", "10.9.0.1", "10.9.0.2", "0.0.0.0"]),
        true => choices.pick(&[
            "::1",
            "2001:db8:9::1",
            "2001:db8:9::2",
            "::",
            "::ffff:10.9.0.1",
        ]),
    };
    text.parse().expect("an address")
}

/// Places of the same in `struct bpf_tcp_sock`, with their sizes.
const READ_FIGURES: &[(u32, u32)] = &[
    (0, 4),
    (8, 4),
    (12, 4),
    (28, 4),
    (52, 4),
    (56, 4),
    (60, 4),
    (64, 4),
    (68, 4),
    (80, 8),
    (88, 8),
    (96, 4),
    (100, 4),
    (104, 4),
];

/// Fields of `struct bpf_sock` that programs read of every socket, and those that only whole
/// sockets have: offset, size.
const COMMON: &[(u32, u32)] = &[
    (0, 4),
    (4, 4),
    (4, 1),
    (24, 4),
    (26, 1),
    (28, 4),
    (32, 4),
    (36, 4),
    (40, 4),
    (42, 2),
    (44, 4),
    (44, 2),
    (48, 2),
    (48, 4),
    (52, 4),
    (56, 4),
    (60, 4),
    (64, 4),
    (68, 4),
    (72, 4),
    (72, 1),
    (76, 4),
];
const WHOLE: &[(u32, u32)] = &[(8, 4), (12, 4), (16, 4), (20, 4)];

/// Offset of `dst_ip4`.
const REMOTE_IPV4: u32 = 52;

/// Offset of `state`.
const STATE: u32 = 72;

/// Offset of `rx_queue_mapping`.
const QUEUE: u32 = 76;

/// Adds the result in `r0` to the sum.
const MIX: &str = "r9 *= 31\nr9 += r0\n";

/// Reads some fields of the structure in a register.
fn reads(choices: &mut Choices<'_>, base: &str, fields: &[&[(u32, u32)]]) -> String {
    let mut text = String::new();
    let fields: Vec<(u32, u32)> = fields.iter().copied().flatten().copied().collect();
    for _ in 0..1 + choices.below(8) {
        let (offset, size) = choices.pick(&fields);
        let bits = size * 8;
        if offset == REMOTE_IPV4 {
            // Of IPv6 it is 127.0.0.6 for sockets that accepted a connection.
            let _ = writeln!(text, "r3 = *(u32 *)({base} + 4)\nif r3 != 2 goto +3");
        }
        let _ = writeln!(text, "r1 = *(u{bits} *)({base} + {offset})");
        if offset == QUEUE {
            // Linux gives 64 bits of ones for no queue. Which of queue 0 and none a connection
            // over the loopback device has differs on a busy machine; sockets that are not
            // connected (states 7 and 10) always have none.
            let _ = write!(
                text,
                "w1 = w1\nr3 = *(u32 *)({base} + {STATE})\nif r3 == 7 goto +3\n\
                 if r3 == 10 goto +2\nif w1 != 0 goto +1\nw1 = -1\n"
            );
        }
        text += "r9 *= 31\nr9 += r1\n";
    }
    text
}

/// Reads some fields of the socket in `r7`, those of IPv6 only if it is of IPv6: a connection that
/// is asked for over IPv4 has what was in its memory before.
fn reads_of_family(choices: &mut Choices<'_>) -> String {
    let is_ipv6 = |(offset, _): &(u32, u32)| matches!(offset, 28..44 | 56..72);
    let (ipv6, others): (Vec<_>, Vec<_>) = COMMON.iter().copied().partition(is_ipv6);
    let always = reads(choices, "r7", &[&others]);
    let of_ipv6 = reads(choices, "r7", &[&ipv6]);
    format!("{always}r3 = *(u32 *)(r7 + 4)\nif r3 != 10 goto ipv4\n{of_ipv6}ipv4:\n")
}

/// Place of the tuple below the frame pointer.
const TUPLE: u32 = 80;

fn lookups(choices: &mut Choices<'_>) -> Case {
    let namespace = match choices.one_in(6) {
        true => choices.pick(&[0, 1, 5, 0x7fff_ffff, 0x8000_0000, 1 << 32, u64::MAX - 1]),
        false => u64::MAX,
    };
    lookup(choices, namespace)
}

/// Lookups in namespaces by their ids.
fn in_namespaces(choices: &mut Choices<'_>) -> Case {
    let ids = network::NAMESPACES.map(u64::from);
    let namespace = match choices.below(8) {
        0 => u64::MAX,
        1 => choices.pick(&[0, 6, ids[0] | 1 << 32, ids[0] | 1 << 31, ids[1] - 1]),
        _ => choices.pick(&ids),
    };
    lookup(choices, namespace)
}

fn lookup(choices: &mut Choices<'_>, namespace: u64) -> Case {
    let kind = choices.pick(&[
        ProgramType::Xdp,
        ProgramType::SchedCls,
        ProgramType::SchedAct,
        ProgramType::CgroupSkb,
    ]);
    let helper = choices.pick(&[84, 84, 85, 85, 99]);
    let is_common = helper == 99;
    let tuple = tuple(choices);
    let len = match choices.one_in(12) {
        true => choices.pick(&[1, 4, 8, 11, 13, 35, 36, 12]),
        false => tuple.len() as u32,
    };
    let flags = if choices.one_in(12) {
        choices.value()
    } else {
        0
    };
    let mut text = format!(
        "r6 = r1\n{}{}r9 = 0\nr1 = r6\nr2 = r10\nr2 += -{TUPLE}\nr3 = {len}\nr4 = {namespace:#x} ll\n\
         r5 = {flags:#x} ll\ncall {helper}\nif r0 == 0 goto none\nr7 = r0\nr9 = 1\n",
        bytes_at(TUPLE, &[0; 40]),
        bytes_at(TUPLE, &tuple),
    );
    text += &match is_common {
        true => reads_of_family(choices),
        false => reads(choices, "r7", &[COMMON, WHOLE]),
    };
    for at in 0..choices.below(4) {
        text += &question(choices, kind, at);
    }
    text += "r1 = r7\ncall 86\n";
    text += MIX;
    text += &result(kind);
    let context = context(choices, kind);
    let case = Case::tc(choices, text);
    Case {
        kind,
        context,
        ..case
    }
}

/// Returns the sum; programs of cgroups, which return 0 to 3, leave it in the context.
fn result(kind: ProgramType) -> String {
    let left = match kind {
        ProgramType::CgroupSkb => "*(u32 *)(r6 + 48) = r0\nr0 = 1\n",
        _ => "",
    };
    format!("none:\nr0 = r9\nr1 = r0\nr1 >>= 32\nr0 ^= r1\n{left}exit")
}

/// A context of a random device.
fn context(choices: &mut Choices<'_>, kind: ProgramType) -> Vec<u8> {
    if choices.one_in(3) {
        return Vec::new();
    }
    let device = choices.pick(&DEVICES).to_ne_bytes();
    let (mut context, at) = match kind {
        ProgramType::Xdp => (vec![0; 24], 12),
        _ => (vec![0; 192], 40),
    };
    if kind == ProgramType::Xdp {
        let end = 34u32.to_ne_bytes();
        context[4..8].copy_from_slice(&end);
    }
    context[at..at + 4].copy_from_slice(&device);
    context
}

/// Both ends of a packet: some are those of sockets.
fn tuple(choices: &mut Choices<'_>) -> Vec<u8> {
    if choices.one_in(3)
        && let Some(tuple) = network::ends_of_any(choices)
    {
        return tuple;
    }
    let is_ipv6 = choices.one_in(2);
    let mut tuple = Vec::new();
    let mut push = |address: IpAddr| match address {
        IpAddr::V4(address) => tuple.extend(address.octets()),
        IpAddr::V6(address) => tuple.extend(address.octets()),
    };
    let loopback = if is_ipv6 {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    } else {
        [127, 0, 0, 1].into()
    };
    let ends = match choices.one_in(2) {
        true => [loopback; 2],
        false => [address(choices, is_ipv6), address(choices, is_ipv6)],
    };
    ends.into_iter().for_each(&mut push);
    let port = |choices: &mut Choices<'_>| match choices.below(3) {
        0 => 5000 + choices.below(24) as u16,
        _ => choices.pick(&PORTS),
    };
    tuple.extend(port(choices).to_be_bytes());
    tuple.extend(port(choices).to_be_bytes());
    tuple
}

/// A call that asks what the socket in `r7` is.
fn question(choices: &mut Choices<'_>, kind: ProgramType, at: u32) -> String {
    let convert = |choices: &mut Choices<'_>| {
        let helper = choices.pick(&[136, 137, 138, 139, 140, 178, 196]);
        format!(
            "r1 = r7\ncall {helper}\nr1 = 0\nif r0 == 0 goto q{at}\nr1 = 1\nq{at}:\nr9 *= 31\nr9 += r1\n"
        )
    };
    let has_skb = matches!(kind, ProgramType::SchedCls | ProgramType::SchedAct);
    match choices.below(6) {
        0 if kind != ProgramType::Xdp => {
            let fields = reads(choices, "r0", &[COMMON, WHOLE]);
            format!("r1 = r7\ncall 95\nif r0 == 0 goto q{at}\n{fields}q{at}:\nr9 *= 31\n")
        }
        1 if kind != ProgramType::Xdp => {
            // Figures are compared of connections.
            let fields = reads(choices, "r0", &[READ_FIGURES]);
            format!(
                "r1 = r7\ncall 96\nif r0 == 0 goto q{at}\nr9 += 5\nr1 = *(u32 *)(r7 + 72)\n\
                 if r1 != 1 goto q{at}\n{fields}q{at}:\nr9 *= 31\n"
            )
        }
        2 if kind != ProgramType::Xdp => {
            let fields = reads(choices, "r0", &[COMMON, WHOLE]);
            format!("r1 = r7\ncall 98\nif r0 == 0 goto q{at}\n{fields}q{at}:\nr9 *= 31\n")
        }
        3 if has_skb => {
            let flags = choices.pick(&[0, 0, 1]);
            format!("r1 = r6\nr2 = r7\nr3 = {flags}\ncall 124\n{MIX}")
        }
        _ => convert(choices),
    }
}

/// Reads the socket of a packet.
fn of_packets(choices: &mut Choices<'_>) -> Case {
    let mut text =
        String::from("r6 = r1\nr9 = 0\nr7 = *(u64 *)(r6 + 168)\nif r7 == 0 goto none\nr9 = 1\n");
    text += &reads(choices, "r7", &[COMMON]);
    let kind = choices.pick(&[
        ProgramType::SchedCls,
        ProgramType::SchedAct,
        ProgramType::CgroupSkb,
    ]);
    for at in 0..choices.below(4) {
        text += &question(choices, kind, at);
    }
    text += &result(kind);
    let mut case = Case::tc(choices, text);
    case.packet.resize(54 + case.packet.len(), 0);
    match choices.below(3) {
        0 => case.packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]),
        1 => case.packet[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]),
        _ => {}
    }
    Case { kind, ..case }
}
