//! Frames: made from headers, and changed by header, by field and by byte.

use packet::set_checksums;

use super::frames::{
    EXTENSIONS, PORTS, PROTOCOLS, TYPES, address, ethernet, macs, network, payload,
};
use super::layout::{Field, FieldKind, Layout, VXLAN};
use super::mutator::least_len;
use super::random::Chooser;

/// Most bytes of a frame.
pub(super) const MOST_BYTES: usize = 1514;
/// Least bytes of a frame: an Ethernet header.
pub(super) const LEAST_BYTES: usize = 14;

/// Makes and changes frames.
#[derive(Debug, Default)]
pub(super) struct Packets {
    layout: Layout,
    /// Numbers that the program compares with and what it reads, of up to 8 bytes.
    pub(super) numbers: Vec<u64>,
    scratch: Vec<u8>,
}

impl Packets {
    /// Makes a frame.
    pub(super) fn generate(&mut self, chooser: &mut Chooser, frame: &mut Vec<u8>) {
        frame.clear();
        ethernet(chooser, frame, 0);
        fix_lengths(&mut self.layout, frame);
        set_checksums(frame);
    }

    /// Changes a frame; `other` is a frame to take parts of.
    pub(super) fn mutate(&mut self, chooser: &mut Chooser, frame: &mut Vec<u8>, other: &[u8]) {
        let changes = 1 + chooser.small(4);
        let mut is_resized = false;
        let mut is_found = false;
        for _ in 0..changes {
            if !is_found {
                self.layout.find(frame);
                is_found = true;
            }
            let len = frame.len();
            match chooser.below(32) {
                0..=11 => self.change_field(chooser, frame),
                12..=14 => flip(chooser, frame),
                15..=17 => self.put_number(chooser, frame),
                18..=19 => insert_tag(&self.layout, chooser, frame),
                20..=21 => self.insert_extension(chooser, frame),
                22 => self.insert_options(chooser, frame),
                23..=24 => self.cut(chooser, frame),
                25..=26 => append(chooser, frame),
                27 => self.remove_header(chooser, frame),
                28 => splice(chooser, frame, other, &mut self.scratch),
                29 => self.wrap(chooser, frame),
                30 => copy_inside(chooser, frame),
                _ => {
                    ethernet_behind(&self.layout, chooser, frame);
                }
            }
            if frame.len() != len {
                (is_resized, is_found) = (true, false);
            }
        }
        frame.truncate(MOST_BYTES);
        if frame.len() < LEAST_BYTES {
            frame.resize(LEAST_BYTES, 0);
        }
        if is_resized && !chooser.one_in(4) {
            fix_lengths(&mut self.layout, frame);
        }
        if chooser.one_in(8) {
            set_checksums(frame);
        }
    }

    fn change_field(&mut self, chooser: &mut Chooser, frame: &mut [u8]) {
        if self.layout.fields.is_empty() {
            return flip(chooser, frame);
        }
        let field = chooser.of(&self.layout.fields);
        let Some(bytes) = frame.get_mut(field.at..field.at + field.len) else {
            return flip(chooser, frame);
        };
        set_field(chooser, field, bytes, &self.numbers);
    }

    /// Puts a number of the program somewhere.
    fn put_number(&self, chooser: &mut Chooser, frame: &mut [u8]) {
        if self.numbers.is_empty() {
            return flip(chooser, frame);
        }
        let number = chooser.of(&self.numbers);
        let at = match self.layout.fields.is_empty() || chooser.one_in(2) {
            true => chooser.below(frame.len()),
            false => chooser.of(&self.layout.fields).at,
        };
        put(chooser, number, frame, at);
    }

    fn insert_extension(&self, chooser: &mut Chooser, frame: &mut Vec<u8>) {
        if self.layout.chain.is_empty() {
            return insert_tag(&self.layout, chooser, frame);
        }
        let (field, start) = chooser.of(&self.layout.chain);
        if start > frame.len() || field >= frame.len() {
            return;
        }
        let kind = chooser.of(&EXTENSIONS);
        let units = chooser.small(3);
        let mut header = vec![0; 8 + units * 8];
        header[0] = frame[field];
        header[1] = match kind {
            44 => 0,
            _ => units as u8,
        };
        frame[field] = kind;
        frame.splice(start..start, header);
    }

    fn insert_options(&self, chooser: &mut Chooser, frame: &mut Vec<u8>) {
        let words = 1 + chooser.small(9);
        let is_tcp = !self.layout.tcp.is_empty() && chooser.one_in(2);
        let places = match is_tcp {
            true => &self.layout.tcp,
            false => &self.layout.ipv4,
        };
        if places.is_empty() {
            return flip(chooser, frame);
        }
        let start = chooser.of(places);
        if frame.len() < start + 20 {
            return;
        }
        let options: Vec<u8> = (0..words * 4)
            .map(|_| match chooser.below(3) {
                0 => 1,
                1 => chooser.small(12) as u8,
                _ => chooser.bits() as u8,
            })
            .collect();
        match is_tcp {
            true => {
                let words = (usize::from(frame[start + 12] >> 4) + words).min(15) as u8;
                frame[start + 12] = words << 4 | frame[start + 12] & 15;
            }
            false => {
                let words = (usize::from(frame[start] & 15) + words).min(15) as u8;
                frame[start] = frame[start] & 0xf0 | words;
            }
        }
        frame.splice(start + 20..start + 20, options);
    }

    /// Cuts a frame, at a header or near its end more often than elsewhere.
    fn cut(&self, chooser: &mut Chooser, frame: &mut Vec<u8>) {
        let len = match chooser.below(4) {
            0 => chooser.below(frame.len() + 1),
            1 => frame.len().saturating_sub(1 + chooser.small(8)),
            _ => {
                let field = match self.layout.fields.is_empty() {
                    true => 0,
                    false => chooser.of(&self.layout.fields).at,
                };
                field + chooser.below(3)
            }
        };
        frame.truncate(len.max(LEAST_BYTES));
    }

    /// Removes a VLAN tag or an extension header.
    fn remove_header(&self, chooser: &mut Chooser, frame: &mut Vec<u8>) {
        if self.layout.chain.len() > 1 && chooser.one_in(2) {
            let at = chooser.below(self.layout.chain.len() - 1);
            let ((field, start), (next, end)) = (self.layout.chain[at], self.layout.chain[at + 1]);
            if next == start && end <= frame.len() && field < start {
                frame[field] = frame[start];
                frame.drain(start..end);
            }
        } else if self.layout.types.len() > 1 {
            let at = self.layout.types[chooser.below(self.layout.types.len() - 1)];
            if at + 4 <= frame.len() {
                frame.drain(at..at + 4);
            }
        }
    }

    /// Puts a frame, or its network packet, into a tunnel.
    fn wrap(&mut self, chooser: &mut Chooser, frame: &mut Vec<u8>) {
        let start = self.layout.starts.get(1).copied().unwrap_or(LEAST_BYTES);
        let carried = self.layout.types.last().copied().unwrap_or(12);
        let carried = super::layout::be16(frame, carried).unwrap_or(0x0800);
        let (is_4, is_6) = (carried == 0x0800, carried == 0x86dd);
        self.scratch.clear();
        self.scratch.extend_from_slice(frame);
        frame.clear();
        macs(chooser, frame);
        let is_whole = !(is_4 || is_6) || chooser.one_in(2);
        let inner = match is_whole {
            true => 0,
            false => start.min(self.scratch.len()),
        };
        let protocol = match (is_whole, is_4, chooser.one_in(2)) {
            (true, _, true) => 17,
            (_, _, true) | (true, _, false) => 47,
            (false, true, false) => 4,
            (false, false, false) => 41,
        };
        network(chooser, frame, protocol);
        match protocol {
            17 => {
                let port = chooser.bits() as u16;
                frame.extend_from_slice(&port.to_be_bytes());
                frame.extend_from_slice(&VXLAN.to_be_bytes());
                frame.extend_from_slice(&[0, 0, 0, 0, 8, 0, 0, 0]);
                frame.extend_from_slice(&((chooser.bits() as u32) & 0xffff_ff00).to_be_bytes());
            }
            47 => {
                let kind = if is_whole { 0x6558 } else { carried };
                frame.extend_from_slice(&[0, 0]);
                frame.extend_from_slice(&kind.to_be_bytes());
            }
            _ => {}
        }
        frame.extend_from_slice(&self.scratch[inner..]);
    }
}

/// Sets a field to a value that is worth trying.
fn set_field(chooser: &mut Chooser, field: Field, bytes: &mut [u8], numbers: &[u64]) {
    let mut value = [0; 16];
    value[..bytes.len()].copy_from_slice(bytes);
    if chooser.one_in(5) && !numbers.is_empty() {
        let number = chooser.of(numbers).to_be_bytes();
        let len = bytes.len().min(8);
        bytes[..len].copy_from_slice(&number[8 - len..]);
        if chooser.one_in(2) {
            bytes[..len].reverse();
        }
        return;
    }
    match (field.kind, chooser.below(4)) {
        (FieldKind::EtherType, 0..=2) => bytes.copy_from_slice(&chooser.of(&TYPES).to_be_bytes()),
        (FieldKind::Protocol, 0..=2) => bytes[0] = chooser.of(&PROTOCOLS),
        (FieldKind::Port, 0..=1) => bytes.copy_from_slice(&chooser.of(&PORTS).to_be_bytes()),
        (FieldKind::Address, 0) => address(chooser, bytes),
        (FieldKind::Mac, 0) => bytes.fill(chooser.of(&[0, 0xff, 1, 2])),
        (_, 1) => {
            let (last, by) = (bytes.len() - 1, 1 + chooser.small(15) as u8);
            bytes[last] = match chooser.one_in(2) {
                true => bytes[last].wrapping_add(by),
                false => bytes[last].wrapping_sub(by),
            };
        }
        (_, 2) => bytes.fill(chooser.of(&[0, 0xff, 0x7f, 0x80])),
        (_, 3) => {
            let at = chooser.below(bytes.len());
            bytes[at] ^= 1 << chooser.below(8);
        }
        _ => {
            let at = chooser.below(bytes.len());
            bytes[at] = chooser.bits() as u8;
        }
    }
}

/// Writes a number in one of the forms that programs read.
pub(super) fn put(chooser: &mut Chooser, number: u64, frame: &mut [u8], at: usize) {
    if at >= frame.len() {
        return;
    }
    let len = (least_len(number) << chooser.below(2)).min(8);
    let mut bytes = number.to_le_bytes();
    if chooser.one_in(2) {
        bytes[..len].reverse();
    }
    let len = len.min(frame.len().saturating_sub(at));
    frame[at..at + len].copy_from_slice(&bytes[..len]);
}

fn flip(chooser: &mut Chooser, frame: &mut [u8]) {
    if frame.is_empty() {
        return;
    }
    let at = match chooser.one_in(4) {
        true => chooser.below(frame.len()),
        false => chooser.below(frame.len().min(80)),
    };
    frame[at] = match chooser.below(4) {
        0 => chooser.bits() as u8,
        1 => frame[at] ^ 1 << chooser.below(8),
        2 => frame[at].wrapping_add(1 + chooser.small(31) as u8),
        _ => chooser.of(&[0, 1, 0x7f, 0x80, 0xff]),
    };
}

/// Inserts a VLAN tag in front of an EtherType.
fn insert_tag(layout: &Layout, chooser: &mut Chooser, frame: &mut Vec<u8>) {
    if layout.types.is_empty() {
        return;
    }
    let at = chooser.of(&layout.types);
    if at + 2 > frame.len() {
        return;
    }
    let kind: u16 = chooser.of(&[0x8100, 0x8100, 0x88a8]);
    let tag = (chooser.bits() as u16).to_be_bytes();
    let kind = kind.to_be_bytes();
    frame.splice(at..at, [kind[0], kind[1], tag[0], tag[1]]);
}

fn append(chooser: &mut Chooser, frame: &mut Vec<u8>) {
    let count = 1 + chooser.small(64);
    let is_zero = chooser.one_in(2);
    for _ in 0..count {
        let byte = chooser.bits() as u8;
        frame.push(if is_zero { 0 } else { byte });
    }
}

/// Replaces what follows some byte by the end of another frame.
fn splice(chooser: &mut Chooser, frame: &mut Vec<u8>, other: &[u8], scratch: &mut Vec<u8>) {
    if other.is_empty() || frame.is_empty() {
        return;
    }
    scratch.clear();
    scratch.extend_from_slice(other);
    let at = chooser.below(frame.len());
    let from = match chooser.one_in(2) {
        true => at.min(scratch.len()),
        false => chooser.below(scratch.len()),
    };
    frame.truncate(at);
    frame.extend_from_slice(&scratch[from..]);
}

/// Copies some bytes of a frame to another place.
fn copy_inside(chooser: &mut Chooser, frame: &mut [u8]) {
    let len = 1 + chooser.small(16);
    if frame.len() <= len {
        return;
    }
    let (from, to) = (
        chooser.below(frame.len() - len),
        chooser.below(frame.len() - len),
    );
    frame.copy_within(from..from + len, to);
}

/// Makes what follows the first header anew.
fn ethernet_behind(layout: &Layout, chooser: &mut Chooser, frame: &mut Vec<u8>) {
    match layout.starts.last() {
        // Only the payload.
        Some(start) if *start < frame.len() && chooser.one_in(2) => {
            frame.truncate(*start);
            payload(chooser, frame);
        }
        _ => {
            frame.clear();
            ethernet(chooser, frame, 0);
        }
    }
}

/// Sets the lengths of IPv4, IPv6 and UDP headers to what follows them.
pub(super) fn fix_lengths(layout: &mut Layout, frame: &mut [u8]) {
    layout.find(frame);
    let len = frame.len();
    let places = [
        (&layout.ipv4, 0, 2),
        (&layout.ipv6, 40, 4),
        (&layout.udp, 0, 4),
    ];
    for (starts, header, field) in places {
        for start in starts {
            let rest = len.saturating_sub(start + header) as u16;
            if let Some(bytes) = frame.get_mut(start + field..start + field + 2) {
                bytes.copy_from_slice(&rest.to_be_bytes());
            }
        }
    }
}
