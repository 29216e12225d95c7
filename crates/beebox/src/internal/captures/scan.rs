//! One thread's scan of a capture or a part of it.

use std::io::{self, Write};
use std::ptr;

use capture::{
    Block, Encoder, Event, Framing, OtherLinkType, Reader, Record, Skipped, packet_metadata,
};
use classic::{JumpLimitExceeded, Semantics};
use packet::{Metadata, Packet};

use super::input::Source;
use super::{FilterCaptureError, FilterSource, PacketCounts};
use crate::{Filter, FilterError, FilterRunner};

/// Bytes of matching packets that are collected before they are written.
const PORTION: usize = 256 << 10;

/// Over a mapping, how many bytes ahead of a packet memory is prefetched (about ten
/// packets: the latency of memory), and how many cache lines (about those of a packet).
const FETCH_DISTANCE: usize = 3072;
const FETCH_LINES: usize = 5;

/// Prefetches what lies some packets behind the start of `rest`.
#[inline(always)]
pub(super) fn prefetch_behind(rest: &[u8]) {
    sys::mapping::prefetch(rest, FETCH_DISTANCE, FETCH_LINES);
}

/// Packets between two reports of progress; a power of two.
pub(super) const REPORT: u64 = 1 << 14;

/// Seed of the random numbers that a filter may load.
const SEED: u64 = 1;

/// The state of a scan.
pub(super) struct Scan<'p> {
    runners: Runners<'p>,
    encoder: Option<Encoder>,
    /// True if captures are mapped, so that memory is prefetched.
    mapped: bool,
    /// Bytes to write.
    pub(super) kept: Vec<u8>,
}

/// Output of matching packets and of progress.
pub(super) struct Drain<'d> {
    file: Option<&'d mut (dyn Write + 'd)>,
    progress: &'d mut (dyn FnMut(u64) + 'd),
    /// Write before waiting for more of the capture.
    eager: bool,
}

impl<'d> Drain<'d> {
    pub(super) fn new(
        file: Option<&'d mut (dyn Write + 'd)>,
        progress: &'d mut (dyn FnMut(u64) + 'd),
        eager: bool,
    ) -> Drain<'d> {
        Drain {
            file,
            progress,
            eager,
        }
    }

    /// Writes and clears `kept`.
    pub(super) fn write(&mut self, kept: &mut Vec<u8>) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(kept)?;
            if self.eager {
                file.flush()?;
            }
        }
        kept.clear();
        Ok(())
    }

    /// Writes `kept` if it is due, and reports progress.
    fn flush_if_due(&mut self, kept: &mut Vec<u8>, reader: &Reader<Source>) -> io::Result<()> {
        if kept.is_empty() {
            self.report(reader.offset());
        } else if kept.len() >= PORTION || self.eager && !reader.has_next_buffered() {
            self.report(reader.offset());
            self.write(kept)?;
        }
        Ok(())
    }

    /// Reports progress.
    pub(super) fn report(&mut self, offset: u64) {
        (self.progress)(offset);
    }
}

impl<'p> Scan<'p> {
    pub(super) fn new(
        programs: &'p dyn FilterSource,
        encoder: Option<Encoder>,
        mapped: bool,
    ) -> Scan<'p> {
        Scan {
            runners: Runners::new(programs),
            encoder,
            mapped,
            kept: Vec::new(),
        }
    }

    /// The same for another thread.
    pub(super) fn another(&self) -> Scan<'p> {
        Scan::new(self.runners.programs, self.encoder, self.mapped)
    }

    /// Writes what a capture begins with in the output.
    pub(super) fn start_capture(&mut self, framing: &Framing) {
        if let Some(encoder) = &self.encoder {
            encoder.start_capture(framing, &mut self.kept);
        }
    }

    /// Scans the records that start before `end`, until `limit` packets are kept. Packets
    /// in the result are counted from where the scan starts. Without a drain all bytes
    /// stay in `kept`.
    pub(super) fn run(
        &mut self,
        reader: &mut Reader<Source>,
        end: u64,
        limit: u64,
        drain: Option<&mut Drain<'_>>,
    ) -> (PacketCounts, Result<(), FilterCaptureError>) {
        let mut resident = Resident::from(reader);
        let stopped = self.walk(reader, end, limit, drain, &mut resident);
        resident.release(reader);
        stopped
    }

    fn walk(
        &mut self,
        reader: &mut Reader<Source>,
        end: u64,
        limit: u64,
        mut drain: Option<&mut Drain<'_>>,
        resident: &mut Resident,
    ) -> (PacketCounts, Result<(), FilterCaptureError>) {
        let mut tally = PacketCounts::default();
        self.runners.clear_interfaces();
        while reader.offset() < end && tally.matched < limit {
            let most = REPORT - tally.packets % REPORT;
            let (passed, known) = self.runners.skip_packets(reader, end, most, self.mapped);
            tally.packets += passed.packets;
            tally.bytes += passed.bytes;
            if known || passed.packets < most {
                if !known && reader.offset() >= end {
                    break;
                }
                // Packets of a live capture are written without waiting for more.
                if !self.kept.is_empty()
                    && let Some(drain) = &mut drain
                    && let Err(error) = drain.flush_if_due(&mut self.kept, reader)
                {
                    return (tally, Err(FilterCaptureError::Output(error)));
                }
                match reader.next() {
                    Ok(Some(Event::Packet(record))) => {
                        tally.packets += 1;
                        tally.bytes += record.data().len() as u64;
                        let keeps = if known {
                            Ok(true)
                        } else {
                            self.runners.keeps(&record)
                        };
                        match keeps {
                            Ok(false) => {}
                            Ok(true) => {
                                if let Err(mismatch) = self.keep(&record, &mut tally) {
                                    let packet = tally.packets;
                                    return (
                                        tally,
                                        Err(FilterCaptureError::LinkType { packet, mismatch }),
                                    );
                                }
                            }
                            Err(refused) => return (tally, Err(refused.at(tally.packets))),
                        }
                    }
                    Ok(Some(Event::Block(block))) => self.pass(&block),
                    Ok(None) => break,
                    Err(error) => return (tally, Err(FilterCaptureError::Capture(error))),
                }
            }
            if tally.packets.is_multiple_of(REPORT) {
                resident.release(reader);
            }
            let is_something_due = !self.kept.is_empty() || tally.packets.is_multiple_of(REPORT);
            if is_something_due
                && let Some(drain) = &mut drain
                && let Err(error) = drain.flush_if_due(&mut self.kept, reader)
            {
                return (tally, Err(FilterCaptureError::Output(error)));
            }
        }
        (tally, Ok(()))
    }

    // A call, so that the loop keeps its registers for packets that do not match.
    #[inline(never)]
    fn keep(&mut self, record: &Record<'_>, tally: &mut PacketCounts) -> Result<(), OtherLinkType> {
        if let Some(encoder) = &self.encoder {
            encoder.put_packet(record, &mut self.kept)?;
        }
        tally.matched += 1;
        tally.matched_bytes += record.data().len() as u64;
        Ok(())
    }

    #[cold]
    fn pass(&mut self, block: &Block<'_>) {
        if let Some(encoder) = &self.encoder {
            encoder.put_block(block, &mut self.kept);
        }
        if block.is_structural() {
            self.runners.clear_interfaces();
        }
    }
}

/// The scanned part of a mapped capture that is still resident.
pub(super) struct Resident {
    from: u64,
}

impl Resident {
    pub(super) fn from(reader: &Reader<Source>) -> Resident {
        Resident {
            from: reader.offset(),
        }
    }

    /// Releases it, except the current page.
    pub(super) fn release(&mut self, reader: &Reader<Source>) {
        const PAGE: u64 = 4096;
        let to = reader.offset() / PAGE * PAGE;
        if let Some(mapping) = reader.mapping()
            && to > self.from
        {
            sys::mapping::release(mapping, self.from as usize..to as usize);
            self.from = to;
        }
    }
}

/// The filters of the interfaces, each with its runner of this thread.
pub(super) struct Runners<'p> {
    programs: &'p dyn FilterSource,
    runners: Vec<InterfaceRunner<'p>>,
    /// Index into `runners`, by interface; `UNKNOWN` until its first packet.
    by_interface: Vec<usize>,
}

struct InterfaceRunner<'p> {
    filter: &'p Filter,
    runner: FilterRunner<'p>,
}

const UNKNOWN: usize = usize::MAX;

/// Reason why a filter has no result.
pub(super) enum Refused {
    Program(FilterError),
    JumpLimit,
}

impl Refused {
    pub(super) fn at(self, packet: u64) -> FilterCaptureError {
        match self {
            Refused::Program(refusal) => FilterCaptureError::Program { packet, refusal },
            Refused::JumpLimit => FilterCaptureError::JumpLimit { packet },
        }
    }
}

impl<'p> Runners<'p> {
    pub(super) fn new(programs: &'p dyn FilterSource) -> Runners<'p> {
        Runners {
            programs,
            runners: Vec::new(),
            by_interface: Vec::new(),
        }
    }

    /// Clears the filters of interfaces, which may have changed.
    pub(super) fn clear_interfaces(&mut self) {
        self.by_interface.clear();
    }

    /// Skips packets of one interface that its filter drops; true if it stopped at one
    /// that the filter keeps. Not for kernel semantics, which need the record's metadata.
    #[inline(never)]
    pub(super) fn skip_packets(
        &mut self,
        reader: &mut Reader<Source>,
        end: u64,
        most: u64,
        mapped: bool,
    ) -> (Skipped, bool) {
        let Some(id) = self.by_interface.iter().position(|&index| index != UNKNOWN) else {
            return (Skipped::default(), false);
        };
        let chosen = &mut self.runners[self.by_interface[id]];
        if chosen.filter.semantics() == Semantics::Kernel {
            return (Skipped::default(), false);
        }
        let mut keeps = false;
        let passed = reader.skip_packets(end, most, |rest, packet| {
            if mapped {
                prefetch_behind(rest);
            }
            if packet.interface as usize != id {
                return false;
            }
            let packet = Packet::captured(packet.data, packet.wire_len, &Metadata::UNKNOWN);
            match chosen.runner.run(&packet) {
                Ok(0) => true,
                Ok(_) => {
                    keeps = true;
                    false
                }
                // It runs again where the error is reported.
                Err(JumpLimitExceeded) => false,
            }
        });
        (passed, keeps)
    }

    #[inline(always)]
    pub(super) fn keeps(&mut self, record: &Record<'_>) -> Result<bool, Refused> {
        let id = record.interface_id() as usize;
        let index = match self.by_interface.get(id) {
            Some(&index) if index != UNKNOWN => index,
            _ => self.add_interface(record).map_err(Refused::Program)?,
        };
        self.runners[index]
            .keeps(record)
            .map_err(|_| Refused::JumpLimit)
    }

    /// Chooses the filter at the first packet of an interface.
    #[cold]
    fn add_interface(&mut self, record: &Record<'_>) -> Result<usize, FilterError> {
        let filter = self.programs.for_interface(record.interface())?;
        let known = self
            .runners
            .iter()
            .position(|known| ptr::eq(known.filter, filter));
        let index = known.unwrap_or_else(|| {
            self.runners.push(InterfaceRunner {
                filter,
                runner: filter.seeded_runner(SEED),
            });
            self.runners.len() - 1
        });
        let id = record.interface_id() as usize;
        if self.by_interface.len() <= id {
            self.by_interface.resize(id + 1, UNKNOWN);
        }
        self.by_interface[id] = index;
        Ok(index)
    }
}

impl InterfaceRunner<'_> {
    #[inline(always)]
    fn keeps(&mut self, record: &Record<'_>) -> Result<bool, JumpLimitExceeded> {
        if self.filter.semantics() == Semantics::Kernel {
            return self.keeps_in_kernel(record);
        }
        let packet = Packet::captured(record.data(), record.wire_len(), &Metadata::UNKNOWN);
        Ok(self.runner.run(&packet)? != 0)
    }

    /// Runs on a packet as Linux shows it to a packet socket.
    #[inline(never)]
    fn keeps_in_kernel(&mut self, record: &Record<'_>) -> Result<bool, JumpLimitExceeded> {
        let meta = packet_metadata(record.interface(), record.interface_id(), record.data());
        Ok(self.runner.run(&Packet::whole(record.data(), &meta))? != 0)
    }
}
