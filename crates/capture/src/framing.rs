//! Framing: the boundaries of records, common to both formats.

use crate::Interface;
use crate::fault::Problem;
use crate::pcap::PcapHeader;
use crate::pcapng::Sections;

/// State of a capture before a record, sufficient to resume reading there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framing(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    #[doc(hidden)]
    Pcap(PcapHeader),
    Pcapng(Sections),
}

/// Format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap: this file header, then packets of one interface.
    #[doc(hidden)]
    Pcap(PcapHeader),
    /// pcapng: sections of blocks.
    Pcapng,
}

/// Offsets and lengths of a packet in its record or block, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Length of the whole record.
    pub(crate) len: u32,
    /// Offset of the captured bytes.
    pub(crate) data_at: u32,
    /// Number of captured bytes, cut to the capture's snapshot length.
    pub(crate) data_len: u32,
    /// Length on the wire.
    pub(crate) wire_len: u32,
    /// Number of the receiving interface.
    pub(crate) interface: u32,
}

/// Next item of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Packet(Frame),
    /// A pcapng block without a packet.
    Block {
        len: u32,
    },
    /// The item is incomplete: this many bytes are needed.
    Need(u32),
}

impl Framing {
    /// Item at the start of `bytes`, which may be the start of more.
    #[inline(always)]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        match &mut self.0 {
            Kind::Pcap(header) => header.step(bytes),
            Kind::Pcapng(sections) => sections.step(bytes),
        }
    }

    /// Stated length of the record or block at the start of `bytes`; `None` if they are
    /// too short.
    pub(crate) fn record_len(&self, bytes: &[u8]) -> Option<u64> {
        match &self.0 {
            Kind::Pcap(header) => header.record_len(bytes),
            Kind::Pcapng(sections) => sections.block_len(bytes),
        }
    }

    /// Interfaces described so far in the current section.
    #[inline]
    pub fn interfaces(&self) -> &[Interface] {
        match &self.0 {
            Kind::Pcap(header) => std::slice::from_ref(&header.interface),
            Kind::Pcapng(sections) => &sections.interfaces,
        }
    }

    /// Format of the capture.
    pub fn format(&self) -> Format {
        match &self.0 {
            Kind::Pcap(header) => Format::Pcap(*header),
            Kind::Pcapng(_) => Format::Pcapng,
        }
    }
}
