//! Reader of captures, from the start or from the offset of any record.

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use crate::fault::{Error, Fault, Problem};
use crate::framing::{Frame, Framing, Kind, Step};
use crate::pcap::{self, PcapHeader};
use crate::pcapng::{self, Sections};
use crate::window::Window;
use crate::{ByteOrder, Interface, Timestamp};

/// Reader of a capture: a lending iterator over its packets and blocks.
#[derive(Debug)]
pub struct Reader<R> {
    window: Window<R>,
    framing: Framing,
    packets: u64,
}

/// Offset of the lengths in the header of a record.
const LENGTHS: usize = 8;

/// An item of a capture.
#[derive(Debug)]
pub enum Event<'a> {
    /// A packet.
    Packet(Record<'a>),
    /// A block of a pcapng file without a packet.
    Block(Block<'a>),
}

/// Result of parsing the start of a capture's bytes.
#[derive(Debug)]
pub enum Framed<'a> {
    /// A whole packet or block.
    Event(Event<'a>),
    /// The start of one.
    Incomplete {
        /// Bytes that are needed, if not more.
        needed: u32,
    },
}

/// Fields of a packet that filters without metadata read.
#[derive(Clone, Copy, Debug)]
pub struct PacketData<'a> {
    /// Captured bytes.
    pub data: &'a [u8],
    /// Length on the wire in bytes.
    pub wire_len: u32,
    /// Number of the receiving interface within its section.
    pub interface: u32,
}

/// Count of skipped packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Packets.
    pub packets: u64,
    /// Captured bytes of the packets.
    pub bytes: u64,
}

/// A packet with its record (pcap) or block (pcapng).
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(crate) raw: &'a [u8],
    pub(crate) frame: Frame,
    pub(crate) framing: &'a Framing,
}

/// A pcapng block without a packet.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// All bytes of the block.
    pub raw: &'a [u8],
    pub(crate) framing: &'a Framing,
}

impl<R: Read> Reader<R> {
    /// Reader of a decompressed capture; reads its file header.
    pub fn new(source: R) -> Result<Reader<R>, Error> {
        Self::start(Window::new(source, 0))
    }

    /// Reader of a capture in a mapped file; reads its file header.
    pub fn from_mapping(mapping: Arc<Mmap>) -> Result<Reader<R>, Error> {
        Self::start(Window::over(mapping, 0))
    }

    fn start(window: Window<R>) -> Result<Reader<R>, Error> {
        let mut reader = Reader {
            window,
            framing: Framing(Kind::Pcapng(Sections::new())),
            packets: 0,
        };
        reader.fill(4)?;
        let ahead = reader.window.ahead();
        if ahead.is_empty() {
            return Err(reader.fault(Problem::Empty));
        }
        let mut magic = [0; 4];
        let known = ahead.len().min(4);
        magic[..known].copy_from_slice(&ahead[..known]);
        if PcapHeader::is_magic(magic) {
            if !reader.fill(pcap::FILE_HEADER)? {
                return Err(reader.truncated(pcap::FILE_HEADER as u64));
            }
            let raw = reader.window.consume(pcap::FILE_HEADER);
            let raw = raw.try_into().expect("as many bytes as a file header has");
            match PcapHeader::decode(raw) {
                Ok(header) => reader.framing = Framing(Kind::Pcap(header)),
                Err(problem) => {
                    return Err(Error::Fault(Fault {
                        packets: 0,
                        offset: 0,
                        problem,
                    }));
                }
            }
        } else if u32::from_le_bytes(magic) != pcapng::SECTION {
            return Err(reader.fault(Problem::UnknownFormat { magic }));
        }
        Ok(reader)
    }

    /// Reader of a source whose next byte is the start of a record at `offset` of the
    /// capture. `framing` is the state of the capture there.
    pub fn resume(source: R, offset: u64, framing: Framing) -> Reader<R> {
        Reader {
            window: Window::new(source, offset),
            framing,
            packets: 0,
        }
    }

    /// Reader of a mapped file from the record at `offset`. `framing` is the state of the
    /// capture there.
    pub fn resume_mapping(mapping: Arc<Mmap>, offset: u64, framing: Framing) -> Reader<R> {
        Reader {
            window: Window::over(mapping, offset),
            framing,
            packets: 0,
        }
    }

    /// Replaces the source by one whose next byte is the start of a record at `offset`,
    /// and reuses the buffer. Packets are counted from 0 again.
    pub fn restart(&mut self, source: R, offset: u64, framing: Framing) {
        self.window.restart(source, offset);
        self.framing = framing;
        self.packets = 0;
    }

    /// Next packet or block; `None` at the end.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // it lends
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        let step = loop {
            match self.framing.step(self.window.ahead()) {
                Ok(Step::Need(needed)) => {
                    if !self.advance(needed)? {
                        return Ok(None);
                    }
                }
                Ok(step) => break step,
                Err(problem) => return Err(self.fault(problem)),
            }
        };
        Ok(Some(match step {
            Step::Packet(frame) => {
                self.packets += 1;
                // Loads the start of the next record while the caller uses this one: in a mapped
                // file it is not in a cache.
                let next = self.window.ahead().get(frame.len as usize + LENGTHS);
                std::hint::black_box(next.copied());
                Event::Packet(Record {
                    raw: self.window.consume(frame.len as usize),
                    frame,
                    framing: &self.framing,
                })
            }
            Step::Block { len } => Event::Block(Block {
                raw: self.window.consume(len as usize),
                framing: &self.framing,
            }),
            Step::Need(_) => unreachable!("the loop continues until the item is complete"),
        }))
    }

    /// Skips consecutive packets that start before `end`, at most `limit`, while `drops`
    /// returns true; returns their count. Stops early at a block without a packet, at a
    /// rare form of packet and at the end of the buffered bytes: [`next`](Self::next)
    /// continues there.
    ///
    /// `drops` gets all buffered bytes from the start of the record, and the packet.
    #[inline(always)]
    pub fn skip_packets(
        &mut self,
        end: u64,
        limit: u64,
        drops: impl FnMut(&[u8], PacketData<'_>) -> bool,
    ) -> Skipped {
        let ahead = self.window.ahead();
        let before_end = usize::try_from(end.saturating_sub(self.window.offset()));
        let end = before_end.map_or(ahead.len(), |end| end.min(ahead.len()));
        let (at, skipped) = match &self.framing.0 {
            Kind::Pcap(header) => {
                skip_packets(ahead, end, limit, drops, |bytes| match header.step(bytes) {
                    Ok(Step::Packet(frame)) => Some(frame),
                    _ => None,
                })
            }
            Kind::Pcapng(sections) => skip_packets(ahead, end, limit, drops, |bytes| {
                sections.enhanced_packet(bytes)
            }),
        };
        self.window.consume(at);
        self.packets += skipped.packets;
        skipped
    }

    /// Buffers `needed` bytes; false if the capture ends before the next item.
    #[cold]
    fn advance(&mut self, needed: u32) -> Result<bool, Error> {
        if self.fill(needed as usize)? {
            return Ok(true);
        }
        if self.window.ahead().is_empty() {
            return Ok(false);
        }
        Err(self.truncated(u64::from(needed)))
    }

    fn fill(&mut self, needed: usize) -> Result<bool, Error> {
        let filled = self.window.fill(needed);
        filled.map_err(|source| Error::Io {
            offset: self.window.offset() + self.window.ahead().len() as u64,
            source,
        })
    }

    fn truncated(&self, needed: u64) -> Error {
        self.fault(Problem::Truncated {
            needed,
            present: self.window.ahead().len() as u64,
        })
    }

    #[cold]
    fn fault(&self, problem: Problem) -> Error {
        Error::Fault(Fault {
            packets: self.packets,
            offset: self.window.offset(),
            problem,
        })
    }

    /// First interface of a capture whose items are unread; `None` if it has none before
    /// the first packet or in the first MiB.
    pub fn first_interface(&mut self) -> Result<Option<Interface>, Error> {
        /// Maximum number of bytes before its description.
        const LIMIT: usize = 1 << 20;
        let mut framing = self.framing.clone();
        let mut at = 0;
        while framing.interfaces().is_empty() && at < LIMIT {
            match framing.step(&self.window.ahead()[at..]) {
                Ok(Step::Block { len }) => at += len as usize,
                Ok(Step::Need(needed)) if self.fill(at + needed as usize)? => {}
                // A fault is reported by `next`.
                Ok(Step::Need(_) | Step::Packet(_)) | Err(_) => break,
            }
        }
        Ok(framing.interfaces().first().copied())
    }

    /// True if the next record or block is buffered completely.
    pub fn has_next_buffered(&self) -> bool {
        let ahead = self.window.ahead();
        let len = self.framing.record_len(ahead);
        len.is_some_and(|len| len as usize <= ahead.len())
    }

    /// State of the capture before the next record.
    pub fn framing(&self) -> &Framing {
        &self.framing
    }

    /// Offset in bytes of the next record or block in the decompressed capture.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Number of packets read so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Mapping that is read; `None` for a stream.
    pub fn mapping(&self) -> Option<&Mmap> {
        self.window.mapping()
    }

    /// Buffered bytes from the next record, at least `len` unless the capture ends
    /// before.
    pub fn peek(&mut self, len: usize) -> Result<&[u8], Error> {
        if self.window.ahead().len() < len {
            self.fill(len)?;
        }
        Ok(self.window.ahead())
    }

    /// Skips bytes that [`peek`](Self::peek) returned.
    pub fn skip(&mut self, len: usize) {
        let len = len.min(self.window.ahead().len());
        self.window.consume(len);
    }
}

impl Framing {
    /// The record or block at the start of `bytes`, which may be more; then the framing is that
    /// behind it.
    #[inline]
    pub fn event<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Framed<'a>, Problem> {
        Ok(match self.step(bytes)? {
            Step::Packet(frame) => Framed::Event(Event::Packet(Record {
                raw: &bytes[..frame.len as usize],
                frame,
                framing: self,
            })),
            Step::Block { len } => Framed::Event(Event::Block(Block {
                raw: &bytes[..len as usize],
                framing: self,
            })),
            Step::Need(needed) => Framed::Incomplete { needed },
        })
    }
}

#[inline(always)]
fn skip_packets(
    ahead: &[u8],
    end: usize,
    limit: u64,
    mut drops: impl FnMut(&[u8], PacketData<'_>) -> bool,
    frame: impl Fn(&[u8]) -> Option<Frame>,
) -> (usize, Skipped) {
    let (mut at, mut skipped) = (0, Skipped::default());
    while at < end && skipped.packets < limit {
        let rest = &ahead[at..];
        let Some(frame) = frame(rest) else { break };
        let start = frame.data_at as usize;
        let data = &rest[start..start + frame.data_len as usize];
        let (wire_len, interface) = (frame.wire_len, frame.interface);
        if !drops(
            rest,
            PacketData {
                data,
                wire_len,
                interface,
            },
        ) {
            break;
        }
        at += frame.len as usize;
        skipped.packets += 1;
        skipped.bytes += data.len() as u64;
    }
    (at, skipped)
}

impl<'a> Record<'a> {
    /// Captured bytes.
    #[inline(always)]
    pub fn data(&self) -> &'a [u8] {
        &self.raw[self.data_range()]
    }

    /// Their range in [`raw`](Record::raw).
    #[inline(always)]
    pub fn data_range(&self) -> Range<usize> {
        let start = self.frame.data_at as usize;
        start..start + self.frame.data_len as usize
    }

    /// Length on the wire in bytes.
    #[inline(always)]
    pub fn wire_len(&self) -> u32 {
        self.frame.wire_len
    }

    /// Bytes of the record or block in the file, header included.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Number of the receiving interface within its section.
    #[inline(always)]
    pub fn interface_id(&self) -> u32 {
        self.frame.interface
    }

    /// Receiving interface.
    pub fn interface(&self) -> &'a Interface {
        &self.framing.interfaces()[self.frame.interface as usize]
    }

    /// Time of capture; `None` for simple packet blocks, which have none.
    pub fn timestamp(&self) -> Option<Timestamp> {
        match &self.framing.0 {
            Kind::Pcap(header) => Some(header.timestamp(self.raw)),
            Kind::Pcapng(sections) => sections.timestamp(self.raw, &self.frame),
        }
    }

    /// The same in the units of its interface, without the interface's time offset.
    pub(crate) fn units(&self) -> Option<u64> {
        match &self.framing.0 {
            Kind::Pcap(header) => Some(header.units(self.raw)),
            Kind::Pcapng(sections) => sections.units(self.raw),
        }
    }

    /// Its options as they stand in the block, and their byte order; `None` in pcap.
    pub(crate) fn options(&self) -> Option<(ByteOrder, &'a [u8])> {
        match &self.framing.0 {
            Kind::Pcap(_) => None,
            Kind::Pcapng(sections) => Some((
                sections.order(),
                sections.packet_options(self.raw, &self.frame),
            )),
        }
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("timestamp", &self.timestamp())
            .field("interface", &self.interface_id())
            .field("wire_len", &self.wire_len())
            .field("data", &self.data())
            .finish()
    }
}

impl Block<'_> {
    /// True for section headers and interface descriptions, which later blocks depend on.
    pub fn is_structural(&self) -> bool {
        matches!(self.kind(), pcapng::SECTION | pcapng::INTERFACE)
    }

    /// Block type.
    pub fn kind(&self) -> u32 {
        match &self.framing.0 {
            Kind::Pcap(_) => 0,
            Kind::Pcapng(sections) => sections.order().u32(self.raw, 0),
        }
    }
}
