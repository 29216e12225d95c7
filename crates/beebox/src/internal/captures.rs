//! Filtering captures: files and streams, with the same result for any number of threads.
//!
//! One thread scans a capture, mapped or through one buffer, runs the filter on each
//! packet in place and copies packets that match (`scan`). With more threads a large file
//! is scanned in segments at the same time (`parallel`). Neither format marks where
//! packets start, so the start of a segment is guessed, compared with the end of the
//! segment before, and the segment is scanned again if the guess was wrong. Packets,
//! order and counts do not depend on the number of threads. Tasks that cannot compare read parts
//! that begin where all agree (`packets`).
//!
//! Memory: one buffer of 256 KiB for each thread where a capture is not mapped, and the
//! matching packets of a few segments; it does not grow with the capture.

mod advice;
mod input;
mod merge;
mod output_format;
mod packet_path;
mod packets;
mod parallel;
mod part;
mod positioned;
mod programs;
mod scan;
mod summary;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::ops::AddAssign;

use capture::Encoder;

pub use capture::{
    Block, ByteOrder, Compressor, Error as CaptureError, Event, Fault, Format, Interface, Layout,
    LinkType, OtherLinkType, OutputCompression, PacketData, PcapHeader, Problem, ReadOnlySuffix,
    Record, Resolution, Timestamp, packet_metadata,
};

pub use ::packet::{FlowFields, flow_fields, payload_offset};
pub use advice::{expression_in, is_capture};
pub use input::{Elsewhere, Input};
pub use merge::{Merged, merge};
pub use output_format::{FileFormat, OutputFormatError};
pub use packet_path::{PacketPath, PathRecord};
pub use packets::{LEAST_PART, Packets, PacketsError};
#[cfg(feature = "run")]
pub(crate) use part::{Part, Place};
pub use programs::FilterSource;
pub use summary::{FileCounts, FilterSummary};

use scan::{Drain, Scan};

use crate::FilterError;

/// Bytes of a segment that a thread scans at once: large compared with the cost of a
/// guess, of a hand-over and of releasing its pages (which interrupts the other cores),
/// small enough to keep the matching packets of a few segments in memory.
const SEGMENT: u64 = 8 << 20;

/// Options of filtering captures.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads to use.
    pub jobs: usize,
    /// The most packets that are kept.
    pub limit: Option<u64>,
    /// The most bytes of a packet that are written; 0 is no limit.
    pub snaplen: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            jobs: 1,
            limit: None,
            snaplen: None,
        }
    }
}

/// Packets and bytes, read and kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets read.
    pub packets: u64,
    /// Their captured bytes.
    pub bytes: u64,
    /// Packets kept.
    pub matched: u64,
    /// Their captured bytes.
    pub matched_bytes: u64,
}

impl AddAssign for PacketCounts {
    fn add_assign(&mut self, other: PacketCounts) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.matched += other.matched;
        self.matched_bytes += other.matched_bytes;
    }
}

/// Reason why filtering stopped before the end of a capture. Packets before it were delivered.
#[derive(Debug)]
pub enum FilterCaptureError {
    /// The capture could not be read on.
    Capture(capture::Error),
    /// No filter for an interface of the capture.
    Program {
        /// Number of the first packet of that interface, from 1; 0 if there was none yet.
        packet: u64,
        /// Reason.
        refusal: FilterError,
    },
    /// The filter exceeded its limit of backward jumps on a packet.
    JumpLimit {
        /// Its number, from 1.
        packet: u64,
    },
    /// A packet that matches does not fit the pcap file that is written.
    LinkType {
        /// Its number, from 1.
        packet: u64,
        /// The link types of packet and file.
        #[doc(hidden)]
        mismatch: OtherLinkType,
    },
    /// Packets that match could not be written.
    Output(io::Error),
}

impl FilterCaptureError {
    /// Counts packets from the start of the capture instead of a segment.
    fn after(mut self, packets: u64) -> FilterCaptureError {
        match &mut self {
            FilterCaptureError::Capture(capture::Error::Fault(fault)) => fault.packets += packets,
            FilterCaptureError::Program { packet, .. }
            | FilterCaptureError::JumpLimit { packet }
            | FilterCaptureError::LinkType { packet, .. } => *packet += packets,
            FilterCaptureError::Capture(capture::Error::Io { .. })
            | FilterCaptureError::Output(_) => {}
        }
        self
    }
}

impl fmt::Display for FilterCaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterCaptureError::Capture(error) => write!(f, "{error}"),
            FilterCaptureError::Program { packet: 0, refusal } => write!(f, "{refusal}"),
            FilterCaptureError::Program { packet, refusal } => {
                write!(f, "packet {packet}: {refusal}")
            }
            FilterCaptureError::JumpLimit { packet } => {
                write!(f, "packet {packet}: {}", classic::JumpLimitExceeded)
            }
            FilterCaptureError::LinkType { packet, mismatch } => {
                write!(f, "packet {packet}: {mismatch}")
            }
            FilterCaptureError::Output(error) => {
                write!(f, "writing the packets that match: {error}")
            }
        }
    }
}

impl Error for FilterCaptureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            FilterCaptureError::Capture(error) => Some(error),
            FilterCaptureError::Program { refusal, .. } => Some(refusal),
            FilterCaptureError::JumpLimit { .. } => None,
            FilterCaptureError::LinkType { mismatch, .. } => Some(mismatch),
            FilterCaptureError::Output(error) => Some(error),
        }
    }
}

/// Output of matching packets.
pub struct Output<'w> {
    /// Format of the file.
    pub format: Format,
    /// The file, which [`start_file`](Self::start_file) has begun.
    pub file: &'w mut (dyn Write + 'w),
}

impl Output<'_> {
    /// Writes the file header; once, before the first capture.
    pub fn start_file(&mut self, options: &Options) -> io::Result<()> {
        let mut start = Vec::new();
        Encoder::new(self.format, self.format, options.snaplen).start_file(&mut start);
        self.file.write_all(&start)
    }
}

impl Input {
    /// Counts the packets that match, in one thread.
    ///
    /// # Errors
    /// If the capture cannot be read to its end, or there is no filter for an interface of it.
    pub fn count(self, filter: &dyn FilterSource) -> Result<PacketCounts, crate::Error> {
        let (counts, result) = filter_capture(self, filter, &Options::default(), None, &mut |_| ());
        result?;
        Ok(counts)
    }

    /// Copies the packets that match to a capture of the same format, in one thread.
    ///
    /// # Errors
    /// As [`Input::count`], and if the packets cannot be written.
    pub fn copy(
        self,
        filter: &dyn FilterSource,
        mut to: impl Write,
    ) -> Result<PacketCounts, crate::Error> {
        let options = Options::default();
        let mut output = Output {
            format: Format::common(&[self.format()]),
            file: &mut to,
        };
        let started = output.start_file(&options);
        started.map_err(FilterCaptureError::Output)?;
        let output = Some(&mut output);
        let (counts, result) = filter_capture(self, filter, &options, output, &mut |_| ());
        result?;
        Ok(counts)
    }
}

/// Filters one capture. Returns the counts, and why it stopped if that was before the
/// end. `progress` is called from time to time with the number of bytes of the
/// (decompressed) capture that are read.
pub fn filter_capture(
    input: Input,
    programs: &dyn FilterSource,
    options: &Options,
    output: Option<&mut Output<'_>>,
    progress: &mut dyn FnMut(u64),
) -> (PacketCounts, Result<(), FilterCaptureError>) {
    filter_in_segments(input, programs, options, output, progress, SEGMENT)
}

fn filter_in_segments(
    input: Input,
    programs: &dyn FilterSource,
    options: &Options,
    output: Option<&mut Output<'_>>,
    progress: &mut dyn FnMut(u64),
    segment: u64,
) -> (PacketCounts, Result<(), FilterCaptureError>) {
    let encoder = output
        .as_ref()
        .map(|output| Encoder::new(output.format, input.format(), options.snaplen));
    let mut scan = Scan::new(programs, encoder, input.is_mapped());
    scan.start_capture(input.reader.framing());
    let file = output.map(|output| &mut *output.file as &mut dyn Write);
    let mut drain = Drain::new(file, progress, input.eager);
    let limit = options.limit.unwrap_or(u64::MAX);
    let (tally, result) = match input.splittable(options.jobs, segment) {
        Some(whole) => {
            let split = (options.jobs, segment);
            parallel::run(whole, input.reader, &mut scan, split, limit, &mut drain)
        }
        None => {
            let mut reader = input.reader;
            scan.run(&mut reader, u64::MAX, limit, Some(&mut drain))
        }
    };
    // Packets before a fault are delivered too.
    match drain.write(&mut scan.kept) {
        Ok(()) => (tally, result),
        Err(error) => (tally, result.and(Err(FilterCaptureError::Output(error)))),
    }
}
