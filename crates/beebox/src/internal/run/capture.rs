//! Runs of a program on the packets of a capture.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

use ::kernel::maps::RunGuard;
use ::kernel::programs::PacketVerdict;
use capture::{Encoder, Error as CaptureError, Event, Format, LinkType, OtherLinkType, Record};

use super::by_verdict::{Sorter, VerdictOutput};
use super::summary::{Counter, Stopwatch};
use super::{CaptureSummary, PrintedText, Redirect, RunError, RunRecord, RunnableProgram};
use crate::internal::captures::Input;

/// Bytes of packets that are collected before they are written.
const PORTION: usize = 256 << 10;

/// Output of passed packets.
pub struct PacketOutput<'w> {
    /// Format of the file.
    pub format: Format,
    /// The file, from its start.
    pub file: &'w mut dyn Write,
}

/// Options of a run on a capture.
#[derive(Default)]
pub struct CaptureOptions<'w> {
    /// Output of passed packets.
    pub output: Option<PacketOutput<'w>>,
    /// Outputs of the packets of verdicts.
    pub by_verdict: Vec<VerdictOutput<'w>>,
    /// True for the packets that are observed, counted and written; all without it. The program runs
    /// on the others, too.
    pub choose: Option<&'w mut Choose<'w>>,
    /// Most packets that are observed.
    pub most: Option<u64>,
    /// True if packets that are written get comments, where their format has them: the verdict and the
    /// line that returned it. Runs are in the checked engine then.
    pub comments: bool,
    /// Gets the results of the packets before the place where the runs stopped, if they did.
    pub before: Option<&'w mut CaptureSummary>,
}

/// Chooses a packet by its number and its record.
pub type Choose<'w> = dyn FnMut(u64, &Record<'_>) -> Result<bool, RunCaptureError> + 'w;

/// The run on one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRun<'r> {
    /// Number of the packet, from 1.
    pub packet: u64,
    /// Its captured bytes.
    pub bytes: usize,
    /// The low 32 bits of `r0`.
    pub retval: u32,
    /// Meaning of `retval`.
    #[doc(hidden)]
    pub verdict: &'r PacketVerdict,
    /// Redirect target of the packet.
    pub redirect: Option<Redirect>,
    /// Text that the program printed.
    pub printk: &'r PrintedText,
    /// Records of ring buffers, if they are taken.
    pub records: &'r [RunRecord],
    /// Executed instructions, of runs in the checked engine.
    #[doc(hidden)]
    pub executed: Option<u64>,
}

/// Reason why runs stopped before the end of a capture. Packets before it were written.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunCaptureError {
    /// The capture cannot be read on.
    Capture(CaptureError),
    /// A packet is no Ethernet frame.
    LinkType {
        /// Its number, from 1.
        packet: u64,
        /// Its link type.
        link_type: LinkType,
    },
    /// The program did not return a value.
    Run {
        /// Number of the packet, from 1.
        packet: u64,
        /// Reason.
        error: RunError,
    },
    /// A packet does not fit the file that is written.
    OtherLinkType(OtherLinkType),
    /// Packets could not be written.
    Output(io::Error),
    /// The filter that chooses packets cannot be made, or did not end.
    Filter(String),
}

impl RunCaptureError {
    /// Says that so many packets of the capture were run before.
    pub(super) fn after(mut self, packets: u64) -> RunCaptureError {
        match &mut self {
            RunCaptureError::Capture(CaptureError::Fault(fault)) => fault.packets = packets,
            RunCaptureError::LinkType { packet, .. } | RunCaptureError::Run { packet, .. } => {
                *packet = packets + 1;
            }
            RunCaptureError::Capture(CaptureError::Io { .. })
            | RunCaptureError::OtherLinkType(_)
            | RunCaptureError::Output(_)
            | RunCaptureError::Filter(_) => {}
        }
        self
    }
}

impl From<CaptureError> for RunCaptureError {
    fn from(error: CaptureError) -> RunCaptureError {
        RunCaptureError::Capture(error)
    }
}

impl fmt::Display for RunCaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunCaptureError::Capture(error) => write!(f, "{error}"),
            RunCaptureError::LinkType { packet, link_type } => write!(
                f,
                "packet {packet}: link type {link_type}; programs run on Ethernet frames"
            ),
            RunCaptureError::Run { packet, error } => write!(f, "packet {packet}: {error}"),
            RunCaptureError::OtherLinkType(mismatch) => write!(f, "{mismatch}"),
            RunCaptureError::Output(error) => write!(f, "writing packets: {error}"),
            RunCaptureError::Filter(why) => f.write_str(why),
        }
    }
}

impl Error for RunCaptureError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RunCaptureError::Capture(error) => Some(error),
            RunCaptureError::Run { error, .. } => Some(error),
            RunCaptureError::OtherLinkType(mismatch) => Some(mismatch),
            RunCaptureError::Output(error) => Some(error),
            RunCaptureError::LinkType { .. } | RunCaptureError::Filter(_) => None,
        }
    }
}

impl RunnableProgram<'_> {
    /// Runs the program on each packet of a capture, of any length. What goes on is written as
    /// the program left it. `observe` is called after each run, with the packet as it was
    /// captured.
    pub fn run_capture(
        &mut self,
        input: Input,
        output: Option<PacketOutput<'_>>,
        observe: &mut dyn FnMut(PacketRun<'_>, &[u8]),
    ) -> Result<CaptureSummary, RunCaptureError> {
        let options = CaptureOptions {
            output,
            ..CaptureOptions::default()
        };
        self.run_capture_with(input, options, &mut |run, record| {
            observe(run, record.data())
        })
    }

    /// As [`RunnableProgram::run_capture`], which observes, counts and writes the packets that are
    /// chosen.
    pub fn run_capture_with(
        &mut self,
        mut input: Input,
        options: CaptureOptions<'_>,
        observe: &mut dyn FnMut(PacketRun<'_>, &Record<'_>),
    ) -> Result<CaptureSummary, RunCaptureError> {
        let CaptureOptions {
            mut output,
            by_verdict,
            mut choose,
            most,
            comments,
            before,
        } = options;
        self.note_returns(comments);
        let mut sorter = Sorter::start(by_verdict, &input);
        let mut left = most;
        let format = output.as_ref().map(|output| output.format);
        let encoder = format.map(|format| Encoder::new(format, input.format(), None));
        let mut kept = Vec::new();
        if let Some(encoder) = &encoder {
            encoder.start_file(&mut kept);
            encoder.start_capture(input.framing(), &mut kept);
        }
        let mut counter = Counter::new(self.kind());
        let mut time = Stopwatch::default();
        let mut packet = 0;
        let stopped = loop {
            match input.next_event() {
                Err(error) => break Err(RunCaptureError::Capture(error)),
                Ok(None) => break Ok(()),
                Ok(Some(Event::Block(block))) => {
                    if let Some(encoder) = &encoder {
                        encoder.put_block(&block, &mut kept);
                    }
                    sorter.put_block(&block);
                }
                Ok(Some(Event::Packet(record))) => {
                    packet += 1;
                    let is_chosen = choose
                        .as_mut()
                        .map_or(Ok(true), |choose| choose(packet, &record));
                    let is_chosen = match is_chosen {
                        Ok(is_chosen) => is_chosen,
                        Err(stop) => break Err(stop),
                    };
                    if let (Some(left), true) = (&mut left, is_chosen) {
                        match left.checked_sub(1) {
                            Some(fewer) => *left = fewer,
                            None => break Ok(()),
                        }
                    }
                    let frame = record.data();
                    let at = match frame_time(&record) {
                        Ok(time) => time,
                        Err(stop) => break Err(stop.after(packet - 1)),
                    };
                    #[cfg(feature = "html")]
                    let is_recorded = is_chosen && self.begin_page_run();
                    #[cfg(not(feature = "html"))]
                    let is_recorded = false;
                    // No guard is held while `observe` runs, which may wait for guards.
                    let mut run = || self.run_captured(frame, at, &mut RunGuard::new());
                    let result = match is_recorded {
                        true => run(),
                        false => time.run(run),
                    };
                    let retval = match result {
                        Ok(retval) => retval,
                        Err(error) => {
                            #[cfg(feature = "html")]
                            if is_chosen {
                                self.end_page_run(packet, &record, Err(&error));
                            }
                            break Err(RunCaptureError::Run { packet, error });
                        }
                    };
                    if !is_chosen {
                        self.records();
                        continue;
                    }
                    let redirect = self.captured().and_then(|input| input.redirect(retval));
                    let verdict = counter.count(retval, frame.len(), redirect);
                    let run = PacketRun {
                        packet,
                        bytes: frame.len(),
                        retval,
                        verdict,
                        redirect,
                        printk: &self.services.printed,
                        records: &self.records(),
                        executed: self.executed,
                    };
                    observe(run, &record);
                    #[cfg(feature = "html")]
                    self.end_page_run(packet, &record, Ok((retval, redirect)));
                    let comment = comments.then(|| self.comment(&verdict.name, redirect));
                    if let (Some(encoder), Some(most)) = (&encoder, verdict.kept) {
                        let after = self.captured().map(|input| input.kept_frame(most));
                        let after = after.unwrap_or_default();
                        let put = match &comment {
                            Some(comment) => {
                                encoder.put_commented(&record, &after, comment, &mut kept)
                            }
                            None => encoder.put_changed(&record, &after, &mut kept),
                        };
                        if let Err(error) = put {
                            break Err(RunCaptureError::OtherLinkType(error));
                        }
                    }
                    if !sorter.is_empty() {
                        let input = self.captured();
                        let after = verdict.kept.zip(input);
                        let after = after.map(|(most, input)| input.kept_frame(most));
                        let data = after.as_deref().unwrap_or(frame);
                        let put = sorter.put(&verdict.name, &record, data, comment.as_deref());
                        if let Err(stop) = put {
                            break Err(stop);
                        }
                    }
                }
            }
            if kept.len() >= PORTION {
                write(&mut output, &mut kept)?;
            }
        };
        write(&mut output, &mut kept)?;
        sorter.finish()?;
        let summary = counter.finish(&time);
        match (stopped, before) {
            (Ok(()), _) => Ok(summary),
            (Err(stop), before) => {
                if let Some(before) = before {
                    *before = summary;
                }
                Err(stop)
            }
        }
    }
}

/// Time of an Ethernet frame in nanoseconds; 0 if its record has none.
///
/// # Errors
/// The packet, which the caller numbers, is no Ethernet frame.
#[inline]
pub(super) fn frame_time(record: &Record<'_>) -> Result<u64, RunCaptureError> {
    let link_type = record.interface().link_type;
    if link_type != LinkType::ETHERNET {
        return Err(RunCaptureError::LinkType {
            packet: 0,
            link_type,
        });
    }
    Ok(record.timestamp().map_or(0, |time| {
        let seconds = u64::try_from(time.seconds).unwrap_or(0);
        let seconds = seconds.saturating_mul(1_000_000_000);
        seconds.saturating_add(time.nanoseconds.into())
    }))
}

fn write(output: &mut Option<PacketOutput<'_>>, kept: &mut Vec<u8>) -> Result<(), RunCaptureError> {
    if let Some(output) = output {
        output
            .file
            .write_all(kept)
            .map_err(RunCaptureError::Output)?;
    }
    kept.clear();
    Ok(())
}
