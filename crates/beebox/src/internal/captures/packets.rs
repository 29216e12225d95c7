//! The packets of a capture that a filter keeps, one after the other; also of a part of a capture,
//! when the parts are read by tasks that cannot talk to each other.
//!
//! The parts of a capture begin at the multiples of a size. Neighbours compute from the same bytes
//! where the first record behind such a place starts ([`boundary`]); the task before stops there,
//! and holds the end that it reached to it. Where that is in doubt, the task behind reads nothing
//! and the one before reads on. So each packet is read by one task, whatever tasks run again, and a
//! wrong answer, which takes records that no program writes, is an error of the task before. The
//! interfaces of a part are those that the capture describes before its first packet, and the task
//! before fails if others follow.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use capture::{BOUNDARY_REACH, Error as CaptureError, Event, Framed, Framing, Record, boundary};

use super::scan::{REPORT, Resident, Runners, prefetch_behind};
use super::{FilterCaptureError, FilterSource, Input, PacketCounts};

/// Bytes that may lie before the first packet of a capture.
const HEAD: u64 = 1 << 20;

/// The least size of parts.
pub const LEAST_PART: u64 = 4 << 20;

/// End of a part that has no packets.
const NOTHING: u64 = 0;

/// The packets of a capture or a part of it.
pub struct Packets {
    input: Input,
    /// Offset behind the part, unless the last record before it reaches further.
    end: u64,
    part: Option<Part>,
    counts: PacketCounts,
    first: u64,
}

/// How the parts of a capture are laid.
struct Part {
    /// Bytes of a part.
    size: u64,
    /// The framing before the first packet.
    head: Framing,
    len: u64,
}

/// Why packets cannot be read on.
#[derive(Debug)]
pub enum PacketsError {
    /// The capture cannot be read on, or the filter not be run.
    Capture(FilterCaptureError),
    /// A part ends elsewhere than the next one begins.
    Apart {
        /// Where it ends.
        end: u64,
        /// Where the next one begins.
        begin: u64,
    },
    /// Interfaces or sections are described behind the first packet.
    Described {
        /// End of the part that has them.
        before: u64,
    },
    /// Parts of a capture that is compressed or no file.
    Whole,
}

impl fmt::Display for PacketsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REMEDY: &str = "read this capture as a whole, without parts";
        match self {
            PacketsError::Capture(error) => write!(f, "{error}"),
            PacketsError::Apart { end, begin } => write!(
                f,
                "records end at byte {end}, and those of the next part seem to begin at byte \
                 {begin}: {REMEDY}"
            ),
            PacketsError::Described { before } => write!(
                f,
                "interfaces are described behind the first packet, before byte {before}: {REMEDY}"
            ),
            PacketsError::Whole => write!(
                f,
                "the capture is compressed, or its bytes come in order only: {REMEDY}"
            ),
        }
    }
}

impl std::error::Error for PacketsError {}

impl From<FilterCaptureError> for PacketsError {
    fn from(error: FilterCaptureError) -> PacketsError {
        PacketsError::Capture(error)
    }
}

fn failed(offset: u64, source: io::Error) -> PacketsError {
    FilterCaptureError::Capture(CaptureError::Io { offset, source }).into()
}

impl Packets {
    /// Those of a whole capture.
    pub fn new(input: Input) -> Packets {
        Packets {
            first: input.offset(),
            input,
            end: u64::MAX,
            part: None,
            counts: PacketCounts::default(),
        }
    }

    /// Those of the part of `len` bytes of a capture that begins at the offset `start`, a multiple
    /// of `size`, as all parts do.
    ///
    /// # Errors
    /// If the capture cannot be read from any place.
    pub fn of_part(
        mut input: Input,
        (start, size): (u64, u64),
        len: u64,
    ) -> Result<Packets, PacketsError> {
        if !input.is_seekable() {
            return Err(PacketsError::Whole);
        }
        let size = size.max(LEAST_PART).next_multiple_of(4);
        let head = head(&input).map_err(|error| failed(0, error))?;
        let mut end = start.saturating_add(size);
        let part = Part { size, head, len };
        if start > 0 {
            let first = part.boundary(&input, start)?;
            // What is in doubt belongs to the part before.
            let at = first.unwrap_or(len);
            end = first.map_or(NOTHING, |_| end);
            let framing = part.head.clone();
            let moved = input.seek((at, end.min(len)), framing);
            moved.map_err(|error| failed(at, error))?;
        }
        Ok(Packets {
            end,
            part: Some(part),
            ..Packets::new(input)
        })
    }

    /// Packets and bytes read and kept so far.
    pub fn counts(&self) -> PacketCounts {
        self.counts
    }

    /// Offset of the first record, and of the next one.
    pub fn offsets(&self) -> (u64, u64) {
        (self.first, self.input.offset())
    }

    /// Shows the next packets that the filter keeps, all without one, each with the offset of its
    /// record and which of `others` match, until `packet` returns false; false if none follows.
    ///
    /// # Errors
    /// If the capture cannot be read on; what `packet` returns.
    pub fn read<E: From<PacketsError>>(
        &mut self,
        filter: Option<&dyn FilterSource>,
        others: &[&dyn FilterSource],
        mut packet: impl FnMut(u64, &Record<'_>, &[bool]) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let is_mapped = self.input.is_mapped();
        let mut runners = filter.map(Runners::new);
        let mut others: Vec<_> = others.iter().map(|other| Runners::new(*other)).collect();
        let mut matched = vec![false; others.len()];
        let mut resident = Resident::from(&self.input.reader);
        let mut released = self.counts.packets;
        let mut goes_on = true;
        while goes_on {
            if self.input.offset() >= self.end && !self.reads_on()? {
                return Ok(false);
            }
            let reader = &mut self.input.reader;
            let mut is_kept = runners.is_none();
            if let Some(runners) = &mut runners {
                let (skipped, keeps) = runners.skip_packets(reader, self.end, REPORT, is_mapped);
                self.counts.packets += skipped.packets;
                self.counts.bytes += skipped.bytes;
                is_kept = keeps;
                if !keeps && reader.offset() >= self.end {
                    continue;
                }
            }
            if self.counts.packets >= released + REPORT {
                released = self.counts.packets;
                resident.release(reader);
            }
            let offset = reader.offset();
            if let (true, Some(mapping)) = (is_kept, reader.mapping()) {
                prefetch_behind(&mapping[offset as usize..]);
            }
            match reader.next() {
                Ok(None) => return Ok(false),
                Ok(Some(Event::Packet(record))) => {
                    let bytes = record.data().len() as u64;
                    self.counts.packets += 1;
                    self.counts.bytes += bytes;
                    let number = self.counts.packets;
                    let keeps = |runners: &mut Runners<'_>| {
                        let keeps = runners.keeps(&record);
                        keeps.map_err(|why| PacketsError::from(why.at(number)))
                    };
                    if let (false, Some(runners)) = (is_kept, &mut runners) {
                        is_kept = keeps(runners)?;
                    }
                    if is_kept {
                        self.counts.matched += 1;
                        self.counts.matched_bytes += bytes;
                        for (matched, other) in matched.iter_mut().zip(&mut others) {
                            *matched = keeps(other)?;
                        }
                        goes_on = packet(offset, &record, &matched)?;
                    }
                }
                Ok(Some(Event::Block(block))) => {
                    if block.is_structural() {
                        let all = runners.iter_mut().chain(&mut others);
                        all.for_each(Runners::clear_interfaces);
                    }
                }
                Err(error) => {
                    return Err(PacketsError::from(FilterCaptureError::Capture(error)).into());
                }
            }
        }
        resident.release(&self.input.reader);
        Ok(true)
    }

    /// True if the next part is read too: where it begins is in doubt.
    fn reads_on(&mut self) -> Result<bool, PacketsError> {
        let Some(part) = &self.part else {
            return Ok(false);
        };
        if self.end == NOTHING {
            return Ok(false);
        }
        if self.end >= part.len {
            // The file may have grown.
            self.end = u64::MAX;
            return Ok(true);
        }
        let Some(begin) = part.boundary(&self.input, self.end)? else {
            self.end += part.size;
            return Ok(true);
        };
        let (end, before) = (self.input.offset(), self.end);
        if begin != end {
            return Err(PacketsError::Apart { end, begin });
        }
        if *self.input.framing() != part.head {
            return Err(PacketsError::Described { before });
        }
        Ok(false)
    }
}

impl Part {
    /// Offset of the first record of a part; `None` if it is in doubt.
    fn boundary(&self, input: &Input, start: u64) -> Result<Option<u64>, PacketsError> {
        let from = start.saturating_sub(BOUNDARY_REACH as u64);
        let to = (start + BOUNDARY_REACH as u64).min(self.len);
        let bytes = input.bytes(from..to).map_err(|error| failed(from, error))?;
        let at = (start - from) as usize;
        let found = boundary(&self.head, &bytes, at.min(bytes.len()), to == self.len);
        Ok(found.map(|at| from + at as u64))
    }
}

/// The framing of a seekable capture before its first packet.
fn head(input: &Input) -> io::Result<Framing> {
    let mut framing = input.framing().clone();
    let bytes = input.bytes(input.offset()..HEAD)?;
    let mut rest = &bytes[..];
    loop {
        let before = framing.clone();
        match framing.event(rest) {
            Ok(Framed::Event(Event::Block(block))) => rest = &rest[block.raw.len()..],
            Ok(Framed::Event(Event::Packet(_)) | Framed::Incomplete { .. }) | Err(_) => {
                return Ok(before);
            }
        }
    }
}
