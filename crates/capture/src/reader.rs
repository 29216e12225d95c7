//! Reading a capture from its start, or from any record whose place is known.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use memmap2::Mmap;

use crate::fault::{Error, Fault, Problem};
use crate::framing::{Frame, Framing, Kind, Step};
use crate::pcap::{self, PcapHeader};
use crate::pcapng::{self, Sections};
use crate::window::Window;
use crate::{Interface, Timestamp};

/// A capture being read.
#[derive(Debug)]
pub struct Reader<R> {
    window: Window<R>,
    framing: Framing,
    packets: u64,
}

/// What stands in a capture.
#[derive(Debug)]
pub enum Event<'a> {
    /// A packet.
    Packet(Record<'a>),
    /// Any other block of a pcapng file.
    Block(Block<'a>),
}

/// What a filter needs of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// The captured bytes.
    pub data: &'a [u8],
    /// Length on the wire.
    pub wire_len: u32,
    /// Number of the interface it came by, within its section.
    pub interface: u32,
}

/// What was passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets.
    pub packets: u64,
    /// Their captured bytes.
    pub bytes: u64,
}

/// A packet as it stands in a capture.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(crate) raw: &'a [u8],
    pub(crate) frame: Frame,
    pub(crate) framing: &'a Framing,
}

/// A block without a packet.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// All its bytes.
    pub raw: &'a [u8],
    pub(crate) framing: &'a Framing,
}

impl<R: Read> Reader<R> {
    /// Starts with the first bytes of a capture, decompressed.
    pub fn new(source: R) -> Result<Reader<R>, Error> {
        Self::start(Window::new(source, 0))
    }

    /// Starts with the first bytes of a capture in a mapped file.
    pub fn over(mapping: Arc<Mmap>) -> Result<Reader<R>, Error> {
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
            let raw = reader.window.take(pcap::FILE_HEADER);
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

    /// Starts with a source whose next byte is the start of a record at
    /// `offset`, knowing what is known there.
    pub fn resume(source: R, offset: u64, framing: Framing) -> Reader<R> {
        Reader {
            window: Window::new(source, offset),
            framing,
            packets: 0,
        }
    }

    /// Starts in a mapped file with the record at `offset`, knowing what is
    /// known there.
    pub fn resume_over(mapping: Arc<Mmap>, offset: u64, framing: Framing) -> Reader<R> {
        Reader {
            window: Window::over(mapping, offset),
            framing,
            packets: 0,
        }
    }

    /// Goes on, in the same buffer, with a source whose next byte is the start
    /// of a record at `offset`; packets are counted from 0 again.
    pub fn restart(&mut self, source: R, offset: u64, framing: Framing) {
        self.window.restart(source, offset);
        self.framing = framing;
        self.packets = 0;
    }

    /// The next packet or block; `None` at the end.
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
                Event::Packet(Record {
                    raw: self.window.take(frame.len as usize),
                    frame,
                    framing: &self.framing,
                })
            }
            Step::Block { len } => Event::Block(Block {
                raw: self.window.take(len as usize),
                framing: &self.framing,
            }),
            Step::Need(_) => unreachable!("the loop goes on until there is enough"),
        }))
    }

    /// Passes over packets that start before `end`, at most `most`, for as long as
    /// `drops` says so; counts them and their captured bytes. It stops early at
    /// whatever is not a common packet already at hand: [`next`](Self::next)
    /// goes on from there.
    ///
    /// `drops` is given all bytes from the packet on that are at hand. What it
    /// does is compiled into the loop, which keeps its own state in registers: for
    /// the many packets that a filter drops, this halves what is done beside
    /// filtering.
    #[inline(always)]
    pub fn pass_over(
        &mut self,
        end: u64,
        most: u64,
        drops: impl FnMut(&[u8], Common<'_>) -> bool,
    ) -> Passed {
        let ahead = self.window.ahead();
        let before_end = usize::try_from(end.saturating_sub(self.window.offset()));
        let end = before_end.map_or(ahead.len(), |end| end.min(ahead.len()));
        let (at, passed) = match &self.framing.0 {
            Kind::Pcap(header) => {
                pass_over(ahead, end, most, drops, |bytes| match header.step(bytes) {
                    Ok(Step::Packet(frame)) => Some(frame),
                    _ => None,
                })
            }
            Kind::Pcapng(sections) => pass_over(ahead, end, most, drops, |bytes| {
                sections.common_packet(bytes)
            }),
        };
        self.window.take(at);
        self.packets += passed.packets;
        passed
    }

    /// Gets `needed` bytes; false when the capture ends cleanly instead.
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

    /// The first interface of the capture, from which nothing was read yet;
    /// `None` when no packet can follow, or not soon.
    pub fn first_interface(&mut self) -> Result<Option<Interface>, Error> {
        /// Bytes that may precede its description.
        const SOON: usize = 1 << 20;
        let mut framing = self.framing.clone();
        let mut at = 0;
        while framing.interfaces().is_empty() && at < SOON {
            match framing.step(&self.window.ahead()[at..]) {
                Ok(Step::Block { len }) => at += len as usize,
                Ok(Step::Need(needed)) if self.fill(at + needed as usize)? => {}
                // Whatever is wrong comes to light where it is read.
                Ok(Step::Need(_) | Step::Packet(_)) | Err(_) => break,
            }
        }
        Ok(framing.interfaces().first().copied())
    }

    /// True when the next record or block can be had without reading.
    pub fn has_next_buffered(&self) -> bool {
        let ahead = self.window.ahead();
        let len = self.framing.record_len(ahead);
        len.is_some_and(|len| len as usize <= ahead.len())
    }

    /// What is known about the capture here.
    pub fn framing(&self) -> &Framing {
        &self.framing
    }

    /// Where the next record or block starts.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Packets delivered so far: the number of the last one, counted from 1.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The mapping that is read; `None` where a source is.
    pub fn mapping(&self) -> Option<&Mmap> {
        self.window.mapping()
    }

    /// Bytes that were read and not yet delivered, at least `wanted` of them
    /// unless the capture ends before.
    pub fn peek(&mut self, wanted: usize) -> Result<&[u8], Error> {
        if self.window.ahead().len() < wanted {
            self.fill(wanted)?;
        }
        Ok(self.window.ahead())
    }

    /// Passes over bytes that [`peek`](Self::peek) showed.
    pub fn skip(&mut self, len: usize) {
        let len = len.min(self.window.ahead().len());
        self.window.take(len);
    }
}

#[inline(always)]
fn pass_over(
    ahead: &[u8],
    end: usize,
    most: u64,
    mut drops: impl FnMut(&[u8], Common<'_>) -> bool,
    frame: impl Fn(&[u8]) -> Option<Frame>,
) -> (usize, Passed) {
    let (mut at, mut passed) = (0, Passed::default());
    while at < end && passed.packets < most {
        let rest = &ahead[at..];
        let Some(frame) = frame(rest) else { break };
        let start = frame.data_at as usize;
        let data = &rest[start..start + frame.data_len as usize];
        let (wire_len, interface) = (frame.wire_len, frame.interface);
        if !drops(
            rest,
            Common {
                data,
                wire_len,
                interface,
            },
        ) {
            break;
        }
        at += frame.len as usize;
        passed.packets += 1;
        passed.bytes += data.len() as u64;
    }
    (at, passed)
}

impl<'a> Record<'a> {
    /// The captured bytes.
    #[inline(always)]
    pub fn data(&self) -> &'a [u8] {
        let start = self.frame.data_at as usize;
        &self.raw[start..start + self.frame.data_len as usize]
    }

    /// Length on the wire.
    #[inline(always)]
    pub fn wire_len(&self) -> u32 {
        self.frame.wire_len
    }

    /// The record or block as it stands in the file, header included.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Number of the interface it came by, within its section.
    #[inline(always)]
    pub fn interface_id(&self) -> u32 {
        self.frame.interface
    }

    /// The interface it came by.
    pub fn interface(&self) -> &'a Interface {
        &self.framing.interfaces()[self.frame.interface as usize]
    }

    /// When it was captured; simple packet blocks do not tell.
    pub fn timestamp(&self) -> Option<Timestamp> {
        match &self.framing.0 {
            Kind::Pcap(header) => Some(header.timestamp(self.raw)),
            Kind::Pcapng(sections) => sections.timestamp(self.raw, &self.frame),
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
    /// Its type, and true when it changes how later blocks are read.
    pub fn is_structural(&self) -> bool {
        matches!(self.kind(), pcapng::SECTION | pcapng::INTERFACE)
    }

    /// Its type.
    pub fn kind(&self) -> u32 {
        match &self.framing.0 {
            Kind::Pcap(_) => 0,
            Kind::Pcapng(sections) => sections.order().u32(self.raw, 0),
        }
    }
}
