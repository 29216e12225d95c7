//! Frames that are made from nothing: Ethernet, VLAN tags, IPv4, IPv6, their protocols, and tunnels.

use super::layout::{GENEVE, VXLAN};
use super::random::Chooser;

pub(super) const TYPES: [u16; 12] = [
    0x0800, 0x0800, 0x86dd, 0x86dd, 0x8100, 0x88a8, 0x0806, 0x8847, 0x9100, 0x6558, 0x88cc, 0x0026,
];
pub(super) const PROTOCOLS: [u8; 18] = [
    6, 17, 1, 58, 0, 43, 44, 60, 51, 4, 41, 47, 50, 59, 132, 135, 2, 255,
];
pub(super) const PORTS: [u16; 18] = [
    22, 53, 80, 443, 67, 68, 123, 179, 500, 4500, VXLAN, GENEVE, 8080, 6443, 0, 1, 1024, 65535,
];
pub(super) const EXTENSIONS: [u8; 5] = [0, 43, 44, 60, 135];

pub(super) fn macs(chooser: &mut Chooser, frame: &mut Vec<u8>) {
    for _ in 0..2 {
        let last = chooser.below(4) as u8;
        frame.extend_from_slice(&[2, 0, 0, 0, 0, last]);
    }
}

/// Appends an Ethernet frame.
pub(super) fn ethernet(chooser: &mut Chooser, frame: &mut Vec<u8>, depth: usize) {
    macs(chooser, frame);
    if chooser.one_in(4) {
        for _ in 0..1 + chooser.small(2) {
            let kind: u16 = chooser.of(&[0x8100, 0x8100, 0x88a8]);
            frame.extend_from_slice(&kind.to_be_bytes());
            frame.extend_from_slice(&(chooser.bits() as u16 & 0xfff).to_be_bytes());
        }
    }
    if chooser.one_in(16) {
        frame.extend_from_slice(&chooser.of(&TYPES).to_be_bytes());
        return payload(chooser, frame);
    }
    let tunnels: &[u8] = match depth {
        0 => &[6, 6, 6, 17, 17, 17, 1, 58, 132, 4, 41, 47, 50, 51],
        _ => &[6, 17, 1],
    };
    let protocol = chooser.of(tunnels);
    network(chooser, frame, protocol);
    transport(chooser, frame, protocol, depth);
}

pub(super) fn address(chooser: &mut Chooser, bytes: &mut [u8]) {
    let nets: [[u8; 3]; 6] = [
        [192, 0, 2],
        [198, 51, 100],
        [203, 0, 113],
        [10, 0, 0],
        [127, 0, 0],
        [224, 0, 0],
    ];
    let last = chooser.below(8) as u8;
    match bytes.len() {
        4 => {
            bytes[..3].copy_from_slice(&chooser.of(&nets));
            bytes[3] = last;
        }
        _ => {
            bytes.fill(0);
            let prefix: [u8; 4] = chooser.of(&[
                [0x20, 1, 0x0d, 0xb8],
                [0xfe, 0x80, 0, 0],
                [0xff, 2, 0, 0],
                [0; 4],
            ]);
            bytes[..4].copy_from_slice(&prefix);
            if let Some(byte) = bytes.last_mut() {
                *byte = last;
            }
        }
    }
}

/// Appends the EtherType and header of IPv4 or IPv6.
pub(super) fn network(chooser: &mut Chooser, frame: &mut Vec<u8>, protocol: u8) {
    match chooser.below(5) {
        0..=2 => {
            let options = match chooser.one_in(8) {
                true => 1 + chooser.small(9),
                false => 0,
            };
            let fragment: u16 = match chooser.one_in(16) {
                true => chooser.bits() as u16,
                false => 0x4000,
            };
            frame.extend_from_slice(&[0x08, 0, 0x45 + options as u8, 0, 0, 0, 0, 1]);
            frame.extend_from_slice(&fragment.to_be_bytes());
            frame.extend_from_slice(&[64, protocol, 0, 0]);
            let mut addresses = [0; 8];
            let (from, to) = addresses.split_at_mut(4);
            address(chooser, from);
            address(chooser, to);
            frame.extend_from_slice(&addresses);
            for _ in 0..options * 4 {
                frame.push(1);
            }
        }
        _ => {
            let count = match chooser.one_in(3) {
                true => 1 + chooser.small(3),
                false => 0,
            };
            let kinds: Vec<u8> = (0..count).map(|_| chooser.of(&EXTENSIONS)).collect();
            let next = |at: usize| kinds.get(at).copied().unwrap_or(protocol);
            frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, next(0), 64]);
            let mut addresses = [0; 32];
            let (from, to) = addresses.split_at_mut(16);
            address(chooser, from);
            address(chooser, to);
            frame.extend_from_slice(&addresses);
            for (at, kind) in kinds.iter().enumerate() {
                let units = match kind {
                    44 => 0,
                    _ => chooser.small(2),
                };
                frame.extend_from_slice(&[next(at + 1), units as u8, 1, 4, 0, 0, 0, 0]);
                for _ in 0..units * 8 {
                    frame.push(0);
                }
            }
        }
    }
}

/// Appends the header of a protocol, and what it carries.
fn transport(chooser: &mut Chooser, frame: &mut Vec<u8>, protocol: u8, depth: usize) {
    let ports = |chooser: &mut Chooser, frame: &mut Vec<u8>| {
        for _ in 0..2 {
            let port = match chooser.one_in(2) {
                true => chooser.of(&PORTS),
                false => chooser.bits() as u16,
            };
            frame.extend_from_slice(&port.to_be_bytes());
        }
    };
    match protocol {
        6 => {
            ports(chooser, frame);
            frame.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
            let options = match chooser.one_in(3) {
                true => 1 + chooser.small(9),
                false => 0,
            };
            let flags = chooser.of(&[2, 0x12, 0x10, 0x18, 0x11, 4, 0, 0x29, 0xff]);
            frame.extend_from_slice(&[(5 + options as u8) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
            for _ in 0..options {
                frame.extend_from_slice(&chooser.of(&[
                    [1; 4],
                    [2, 4, 5, 0xb4],
                    [3, 3, 7, 0],
                    [0; 4],
                ]));
            }
            payload(chooser, frame);
        }
        17 => {
            let tunnel = match depth == 0 && chooser.one_in(6) {
                true => Some(chooser.of(&[VXLAN, GENEVE])),
                false => None,
            };
            match tunnel {
                None => {
                    ports(chooser, frame);
                    frame.extend_from_slice(&[0; 4]);
                    payload(chooser, frame);
                }
                Some(port) => {
                    frame.extend_from_slice(&[0xc0, 0]);
                    frame.extend_from_slice(&port.to_be_bytes());
                    frame.extend_from_slice(&[0; 4]);
                    match port {
                        VXLAN => frame.extend_from_slice(&[8, 0, 0, 0, 0, 0, 1, 0]),
                        _ => frame.extend_from_slice(&[0, 0, 0x65, 0x58, 0, 0, 1, 0]),
                    }
                    ethernet(chooser, frame, depth + 1);
                }
            }
        }
        1 | 58 => {
            let kind = chooser.of(&[8, 0, 3, 11, 128, 129, 133, 134, 135, 136, 1, 2]);
            frame.extend_from_slice(&[kind, 0, 0, 0, 0, 1, 0, 1]);
            payload(chooser, frame);
        }
        132 => {
            ports(chooser, frame);
            frame.extend_from_slice(&[0; 12]);
            payload(chooser, frame);
        }
        4 | 41 | 47 => {
            let inner = chooser.of(&[6, 17, 1]);
            let start = frame.len();
            network(chooser, frame, inner);
            match protocol {
                47 => {
                    let flags: u16 = match chooser.one_in(2) {
                        true => chooser.of(&[0x2000, 0x1000, 0x8000, 0x3000, 0xb000]),
                        false => 0,
                    };
                    let options = (flags & 0xb000).count_ones() as usize * 4;
                    frame.splice(start..start, flags.to_be_bytes());
                    frame.splice(start + 4..start + 4, vec![0; options]);
                }
                // IP carries no EtherType.
                _ => {
                    frame.drain(start..start + 2);
                }
            }
            transport(chooser, frame, inner, depth + 1);
        }
        51 => {
            frame.extend_from_slice(&[17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
            frame.extend_from_slice(&[0; 12]);
            transport(chooser, frame, 17, depth + 1);
        }
        _ => payload(chooser, frame),
    }
}

pub(super) fn payload(chooser: &mut Chooser, frame: &mut Vec<u8>) {
    let len = chooser.small(48);
    let is_zero = chooser.one_in(2);
    for _ in 0..len {
        let byte = chooser.bits() as u8;
        frame.push(if is_zero { 0 } else { byte });
    }
}
