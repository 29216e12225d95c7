//! `bpf_lwt_push_encap` of programs that receive and send packets, with right and wrong headers
//! of IP and of segment routing, in networks of random routes.
//!
//! The kernel's test run of a received packet has no route, and Linux 6.18 reads the null
//! pointer in its place for some headers of segment routing. Programs push these only behind a
//! header that gave the packet a route.

use std::net::Ipv6Addr;

use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, bytes_at};
use super::packets::{MIX, flags, length, sequence};
use super::routes::{DEVICES, address, network_of_routes};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family {
    network: Some(network_of_routes),
    ..Family::new("headers of lightweight tunnels", headers)
}];

/// Types of headers.
const SEG6: u32 = 0;
const INLINE: u32 = 1;
const IP: u32 = 2;

/// Position of the header below the frame pointer.
const BUFFER: u32 = 320;

fn headers(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[ProgramType::LwtIn, ProgramType::LwtIn, ProgramType::LwtXmit]);
    let fields = &[0, 4, 8, 16, 20, 24, 28, 68];
    let mut number = 0;
    let mut case = sequence(choices, kind, fields, |choices, len| {
        number += 1;
        match (kind, choices.below(4)) {
            (ProgramType::LwtXmit, 0) => other(choices, len) + MIX,
            (ProgramType::LwtIn, 0 | 1) => inline(choices, number),
            (ProgramType::LwtIn, 2) => outer(choices, number),
            _ => ip(choices),
        }
    });
    // Set when the packet has a route.
    case.text = format!("r8 = 0\n{}", case.text);
    if choices.one_in(2) {
        case.context = vec![0; 192];
        let index = 2 + choices.below(DEVICES);
        case.context[40..44].copy_from_slice(&index.to_le_bytes());
        case.context[8] = choices.below(4) as u8;
        let segment = choices.pick(&[0, 0, 0, 100u8]);
        case.context[176] = segment;
    }
    case
}

/// A call of another helper that moves the packet.
fn other(choices: &mut Choices<'_>, len: usize) -> String {
    match choices.one_in(2) {
        true => {
            let to = length(choices, len).max(100);
            let flags = flags(choices);
            format!("r1 = r6\nr2 = {to:#x} ll\nr3 = {flags:#x} ll\ncall 38\n")
        }
        false => {
            let (count, flags) = (choices.below(60), flags(choices));
            format!("r1 = r6\nr2 = {count}\nr3 = {flags:#x} ll\ncall 43\n")
        }
    }
}

/// A call with a header and a size that is mostly that of the header.
fn call(choices: &mut Choices<'_>, kind: u32, header: &[u8]) -> String {
    let mut header = header.to_vec();
    header.truncate(BUFFER as usize - 8);
    let len = match choices.below(12) {
        0 => 1 + choices.below(header.len() as u32),
        _ => header.len() as u32,
    };
    format!(
        "{}r1 = r6\nr2 = {kind}\nr3 = r10\nr3 += -{BUFFER}\nr4 = {len}\ncall 73\n",
        bytes_at(BUFFER, &header)
    )
}

/// A header of IP, perhaps with one of UDP or GRE behind it; or any bytes.
fn ip(choices: &mut Choices<'_>) -> String {
    let len = choices.pick(&[20, 24, 28, 32, 40, 44, 48, 56, 60, 256, 257, 19, 39, 47]);
    let mut header: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
    let protocol = choices.pick(&[17, 17, 47, 41, 4, 0, 6]);
    match choices.below(12) {
        0 => {}
        1..=6 => {
            header[0] = 0x40 | choices.pick(&[5, 5, 5, 6, 15, 4, 0]);
            header[9] = protocol;
            if choices.one_in(2) {
                header[10..12].fill(0);
            }
        }
        _ => {
            header[0] = 0x60;
            header[6] = protocol;
        }
    }
    let kind = choices.pick(&[IP, IP, IP, IP, IP, IP, IP, 3, 7, 258]);
    call(choices, kind, &header) + MIX
}

/// A header of segment routing.
fn routing(choices: &mut Choices<'_>) -> Vec<u8> {
    let segments = 1 + choices.below(3);
    let mut header = vec![choices.below(256) as u8, 0, 4, 0, 0, 0];
    header.extend([0, 0].map(|_: u8| choices.below(256) as u8));
    header[3] = choices.below(segments) as u8;
    header[4] = segments as u8 - 1;
    for _ in 0..segments {
        let segment: Ipv6Addr = address(choices, false).parse().expect("an address");
        header.extend(segment.octets());
    }
    for _ in 0..choices.pick(&[0, 0, 0, 1, 2]) {
        let len = choices.pick(&[6, 14, 22, 38]);
        header.extend([choices.pick(&[5, 4, 1]), len]);
        header.extend((0..len).map(|_| choices.below(256) as u8));
    }
    header.resize(header.len().next_multiple_of(8), 0);
    header[1] = (header.len() / 8 - 1) as u8;
    header
}

/// A wrong header of segment routing, whatever size it is given with: of another type of
/// routing, of more bytes than there are, or of more segments.
fn wrong(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut header = routing(choices);
    match choices.below(3) {
        0 => header[2] = choices.pick(&[0, 3, 5, 255]),
        1 => header[1] = header[1].wrapping_add(choices.pick(&[1, 100])),
        _ => header[4] = header[1],
    }
    header
}

/// A header of segment routing behind that of the packet. Unsigned ones give a packet of IPv6
/// a route, whatever the lookup finds.
fn inline(choices: &mut Choices<'_>, number: u32) -> String {
    let mut header = match choices.below(8) {
        0 => wrong(choices),
        _ => routing(choices),
    };
    let unsigned = call(choices, INLINE, &header);
    let mut text = format!("{unsigned}{MIX}");
    // What fails before the lookup leaves the packet without route.
    for errno in [22, 74, 12] {
        text += &format!("if r0 == -{errno} goto inline{number}\n");
    }
    text += &format!("r8 = 1\ninline{number}:\n");
    if choices.one_in(6) {
        header[5] |= 8;
        let signed = call(choices, INLINE, &header);
        text += &format!("if r8 == 0 goto signed{number}\n{signed}{MIX}signed{number}:\n");
    }
    text
}

/// A header of segment routing with one of IPv6 in front: wrong ones, and others for packets
/// that have a route. None is signed: where no key is known, the kernel leaves the length of
/// the packet in memory that it has not initialised.
fn outer(choices: &mut Choices<'_>, number: u32) -> String {
    let header = wrong(choices);
    let refused = call(choices, SEG6, &header);
    let mut header = routing(choices);
    // The kernel finds a source for global addresses only; without one, that of the packet is
    // not initialised.
    let end = 24 + 16 * usize::from(header[4]);
    if !matches!(header[end - 16], 0x20 | 0xfd) {
        header[end - 16..end - 14].copy_from_slice(&[0x20, 0x01]);
    }
    let taken = call(choices, SEG6, &header);
    match choices.one_in(3) {
        true => format!("{refused}{MIX}"),
        false => format!("if r8 == 0 goto outer{number}\n{taken}{MIX}outer{number}:\n"),
    }
}
