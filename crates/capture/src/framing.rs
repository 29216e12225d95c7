//! Where records end: the part that is common to both formats.

use crate::Interface;
use crate::fault::Problem;
use crate::pcap::PcapHeader;
use crate::pcapng::Sections;

/// Everything that was learnt about a capture up to some record: enough to go
/// on from there in another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framing(pub(crate) Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pcap(PcapHeader),
    Pcapng(Sections),
}

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap: one header, then packets of one interface.
    Pcap(PcapHeader),
    /// pcapng: blocks.
    Pcapng,
}

/// Where the parts of a packet's record or block stand, from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Length of the whole record.
    pub(crate) len: u32,
    /// Where the captured bytes start.
    pub(crate) data_at: u32,
    /// How many there are, cut to the capture's snapshot length.
    pub(crate) data_len: u32,
    /// Length on the wire.
    pub(crate) wire_len: u32,
    /// By which interface it came.
    pub(crate) interface: u32,
}

/// What stands next in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Packet(Frame),
    /// A pcapng block that is no packet.
    Block {
        len: u32,
    },
    /// More than the given bytes is needed to tell: so many.
    Need(u32),
}

impl Framing {
    /// What stands at the start of `bytes`; `bytes` may be the start of more.
    #[inline(always)]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        match &mut self.0 {
            Kind::Pcap(header) => header.step(bytes),
            Kind::Pcapng(sections) => sections.step(bytes),
        }
    }

    /// Length of the record or block that starts `bytes`, as it states it; `None`
    /// when they do not show it.
    pub(crate) fn record_len(&self, bytes: &[u8]) -> Option<u64> {
        match &self.0 {
            Kind::Pcap(header) => header.record_len(bytes),
            Kind::Pcapng(sections) => sections.block_len(bytes),
        }
    }

    /// The interfaces known so far (of the current section).
    #[inline]
    pub fn interfaces(&self) -> &[Interface] {
        match &self.0 {
            Kind::Pcap(header) => std::slice::from_ref(&header.interface),
            Kind::Pcapng(sections) => &sections.interfaces,
        }
    }

    /// Which format it is.
    pub fn format(&self) -> Format {
        match &self.0 {
            Kind::Pcap(header) => Format::Pcap(*header),
            Kind::Pcapng(_) => Format::Pcapng,
        }
    }
}
