//! Packets of several captures in one pcapng section.
//!
//! The section describes the interfaces of all captures one after the other, so a packet
//! gets the number of its interface in the section. Packets and interfaces keep their
//! options; where a capture has another byte order than the section, numbers in options
//! known here are converted. Blocks for name resolution and decryption secrets are
//! copied where byte orders agree; statistics and other blocks are left out.

use crate::framing::{Framing, Kind};
use crate::pcapng::{self, BODY, OPTION_END, Options};
use crate::writer::{put_block, put_interface, put_section, stated_snaplen};
use crate::{Block, ByteOrder, Interface, Record, Timestamp};

/// Name resolution block.
const NAME_RESOLUTION: u32 = 4;
/// Decryption secrets block.
const DECRYPTION_SECRETS: u32 = 10;

/// Options of an interface description whose value is one number: speeds, time zone and
/// time offset.
const INTERFACE_NUMBERS: &[u16] = &[8, 10, 14, 16, 17];
/// Options of a packet whose value is one number: flags, drop count, packet id, queue.
const PACKET_NUMBERS: &[u16] = &[2, 4, 5, 6];

/// The section that is written.
#[derive(Debug)]
pub struct Section {
    order: ByteOrder,
    /// Interfaces described so far.
    described: u32,
    /// Captured bytes that are kept of a packet.
    keep: u32,
}

/// The numbers in the section of a capture's interfaces.
#[derive(Debug, Default)]
pub struct Numbering(Vec<u32>);

impl Section {
    /// A section in a byte order; of a packet at most `snaplen` bytes are kept (0 is no
    /// limit). Its header is appended to `out`.
    pub fn start(order: ByteOrder, snaplen: Option<u32>, out: &mut Vec<u8>) -> Section {
        put_section(order, out);
        Section {
            order,
            described: 0,
            keep: snaplen.filter(|&len| len != 0).unwrap_or(u32::MAX),
        }
    }

    /// Describes the interface of a capture that starts with one (pcap).
    pub fn add_capture(&mut self, framing: &Framing, to: &mut Numbering, out: &mut Vec<u8>) {
        if let Kind::Pcap(header) = &framing.0 {
            let snaplen = stated_snaplen(header.interface.snaplen, self.keep);
            put_interface(self.order, &header.interface, snaplen, out);
            self.number(to);
        }
    }

    fn number(&mut self, to: &mut Numbering) {
        to.0.push(self.described);
        self.described += 1;
    }

    /// Appends a block without a packet, as far as it has a meaning in the section.
    pub fn add_block(&mut self, block: &Block<'_>, to: &mut Numbering, out: &mut Vec<u8>) {
        let Kind::Pcapng(sections) = &block.framing.0 else {
            return;
        };
        let from = sections.order();
        match block.kind() {
            pcapng::SECTION => to.0.clear(),
            pcapng::INTERFACE => {
                let raw = block.raw;
                let mut body = self.order.put_u16(from.u16(raw, BODY)).to_vec();
                body.extend_from_slice(&[0; 2]);
                let snaplen = stated_snaplen(from.u32(raw, BODY + 4), self.keep);
                body.extend_from_slice(&self.order.put_u32(snaplen));
                let options = &raw[BODY + 8..raw.len() - 4];
                self.put_options(from, options, INTERFACE_NUMBERS, &mut body);
                put_block(self.order, pcapng::INTERFACE, &[&body], out);
                self.number(to);
            }
            NAME_RESOLUTION | DECRYPTION_SECRETS if from == self.order => {
                out.extend_from_slice(block.raw);
            }
            _ => {}
        }
    }

    /// Appends a packet. One without a time gets `time`, that of the packet before it.
    pub fn put_packet(
        &self,
        record: &Record<'_>,
        time: Timestamp,
        numbering: &Numbering,
        out: &mut Vec<u8>,
    ) {
        let kept = record.data().len().min(self.keep as usize);
        let data = &record.data()[..kept];
        let number = numbering.0.get(record.interface_id() as usize);
        let units = record
            .units()
            .unwrap_or_else(|| units_of(time, record.interface()));
        let head = [
            number.copied().unwrap_or_default(),
            (units >> 32) as u32,
            units as u32,
            kept as u32,
            record.wire_len(),
        ];
        let mut body: Vec<u8> = head
            .iter()
            .flat_map(|&word| self.order.put_u32(word))
            .collect();
        body.extend_from_slice(data);
        body.resize(body.len().next_multiple_of(4), 0);
        if let Some((from, options)) = record.options() {
            self.put_options(from, options, PACKET_NUMBERS, &mut body);
        }
        put_block(self.order, pcapng::ENHANCED_PACKET, &[&body], out);
    }

    /// Appends options, of which those with the codes in `numbers` hold one number.
    fn put_options(&self, from: ByteOrder, options: &[u8], numbers: &[u16], out: &mut Vec<u8>) {
        if from == self.order {
            out.extend_from_slice(options);
            return;
        }
        let start = out.len();
        for (code, value) in Options::new(from, options).flatten() {
            out.extend_from_slice(&self.order.put_u16(code));
            out.extend_from_slice(&self.order.put_u16(value.len() as u16));
            if numbers.contains(&code) {
                out.extend(value.iter().rev());
            } else {
                out.extend_from_slice(value);
            }
            out.resize(out.len().next_multiple_of(4), 0);
        }
        if out.len() > start {
            out.extend_from_slice(&self.order.put_u16(OPTION_END));
            out.extend_from_slice(&[0; 2]);
        }
    }
}

/// A time in the units of an interface.
fn units_of(time: Timestamp, interface: &Interface) -> u64 {
    let per_second = interface.resolution.per_second();
    let seconds = time.seconds.wrapping_sub(interface.time_offset);
    let fraction = u128::from(time.nanoseconds) * u128::from(per_second) / 1_000_000_000;
    (seconds as u64)
        .wrapping_mul(per_second)
        .wrapping_add(fraction as u64)
}
