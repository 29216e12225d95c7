//! Several captures merged by time, in one thread.
//!
//! Each capture is read up to its next packet that matches; the earliest of these is
//! written, and its capture is read on (a k-way merge). Of equal times the capture that
//! was given first comes first. A capture whose own packets are out of order stays so.
//!
//! Memory: one buffer of 256 KiB and one packet for each capture.

use std::io::{self, Write};

use capture::{ByteOrder, Encoder, Event, Format, Numbering, Section, Timestamp};

use super::scan::{REPORT, Resident, Runners};
use super::{FilterCaptureError, FilterSource, Input, Options, Output, PacketCounts};

/// Bytes of matching packets that are collected before they are written.
const PORTION: usize = 256 << 10;

/// Result of merging captures.
pub struct Merged {
    /// The counts of each capture, in the order in which they were given.
    pub tallies: Vec<PacketCounts>,
    /// Index of the capture that could not be read or written on, and the reason.
    pub stopped: Option<(usize, FilterCaptureError)>,
}

/// Filters captures and writes the packets that match in the order of their times.
///
/// [`Output::start_file`] must not be called before: a merged pcapng file is one section.
/// `progress` is called from time to time with the number of bytes that are read.
pub fn merge(
    mut inputs: Vec<Input>,
    programs: &dyn FilterSource,
    options: &Options,
    output: Option<&mut Output<'_>>,
    progress: &mut dyn FnMut(u64),
) -> Merged {
    let mut sink = Sink::new(&mut inputs, output, options);
    let mut streams = Vec::new();
    for input in inputs {
        streams.push(Stream::new(input, programs, options, &mut sink));
    }
    let stopped = run(&mut streams, &mut sink, options, progress);
    let flushed = sink.flush();
    Merged {
        stopped: match (stopped, flushed) {
            (None, Err(error)) => Some((0, FilterCaptureError::Output(error))),
            (stopped, _) => stopped,
        },
        tallies: streams.iter().map(|stream| stream.tally).collect(),
    }
}

fn run(
    streams: &mut [Stream<'_>],
    sink: &mut Sink<'_, '_>,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Option<(usize, FilterCaptureError)> {
    for (at, stream) in streams.iter_mut().enumerate() {
        if let Err(stop) = stream.advance(sink) {
            return Some((at, stop));
        }
    }
    let mut kept = 0;
    while options.limit.is_none_or(|limit| kept < limit) {
        let heads = streams.iter().enumerate();
        let times = heads.filter_map(|(at, stream)| Some((stream.head?, at)));
        let (_, at) = times.min()?;
        kept += 1;
        let stream = &mut streams[at];
        stream.tally.matched += 1;
        stream.tally.matched_bytes += stream.bytes;
        sink.ready.append(&mut stream.pending);
        let waits = stream.input.eager && !stream.input.reader.has_next_buffered();
        if sink.ready.len() >= PORTION || waits {
            let offsets = streams.iter().map(|stream| stream.input.reader.offset());
            progress(offsets.sum());
            if let Err(error) = sink.flush() {
                return Some((at, FilterCaptureError::Output(error)));
            }
        }
        if let Err(stop) = streams[at].advance(sink) {
            return Some((at, stop));
        }
    }
    None
}

/// A capture and its next packet that matches.
struct Stream<'p> {
    input: Input,
    resident: Resident,
    runners: Runners<'p>,
    /// For a pcap file.
    encoder: Option<Encoder>,
    numbering: Numbering,
    tally: PacketCounts,
    /// The time of the packet; `None` at the end of the capture.
    head: Option<Timestamp>,
    /// The packet as it will be written.
    pending: Vec<u8>,
    /// Its captured length.
    bytes: u64,
    /// The time of the last packet that had one.
    time: Timestamp,
}

impl<'p> Stream<'p> {
    fn new(
        input: Input,
        programs: &'p dyn FilterSource,
        options: &Options,
        sink: &mut Sink<'_, '_>,
    ) -> Stream<'p> {
        let mut numbering = Numbering::default();
        let mut encoder = None;
        match &mut sink.form {
            Form::None => {}
            Form::Pcap(format) => {
                encoder = Some(Encoder::new(*format, input.format(), options.snaplen));
            }
            Form::Pcapng(section) => {
                section.add_capture(input.reader.framing(), &mut numbering, &mut sink.ready);
            }
        }
        Stream {
            resident: Resident::from(&input.reader),
            input,
            runners: Runners::new(programs),
            encoder,
            numbering,
            tally: PacketCounts::default(),
            head: None,
            pending: Vec::new(),
            bytes: 0,
            time: Timestamp {
                seconds: 0,
                nanoseconds: 0,
            },
        }
    }

    /// Reads up to the next packet that matches.
    fn advance(&mut self, sink: &mut Sink<'_, '_>) -> Result<(), FilterCaptureError> {
        self.head = None;
        loop {
            if self.tally.packets.is_multiple_of(REPORT) {
                self.resident.release(&self.input.reader);
            }
            let record = match self
                .input
                .reader
                .next()
                .map_err(FilterCaptureError::Capture)?
            {
                None => return Ok(()),
                Some(Event::Block(block)) => {
                    if block.is_structural() {
                        self.runners.clear_interfaces();
                    }
                    if let Form::Pcapng(section) = &mut sink.form {
                        section.add_block(&block, &mut self.numbering, &mut sink.ready);
                    }
                    continue;
                }
                Some(Event::Packet(record)) => record,
            };
            self.tally.packets += 1;
            self.tally.bytes += record.data().len() as u64;
            let packet = self.tally.packets;
            self.time = record.timestamp().unwrap_or(self.time);
            let keeps = self.runners.keeps(&record);
            if !keeps.map_err(|refused| refused.at(packet))? {
                continue;
            }
            match (&sink.form, &self.encoder) {
                (Form::Pcapng(section), _) => {
                    section.put_packet(&record, self.time, &self.numbering, &mut self.pending);
                }
                (_, Some(encoder)) => {
                    let put = encoder.put_packet(&record, &mut self.pending);
                    put.map_err(|mismatch| FilterCaptureError::LinkType { packet, mismatch })?;
                }
                (_, None) => {}
            }
            self.head = Some(self.time);
            self.bytes = record.data().len() as u64;
            return Ok(());
        }
    }
}

/// Destination of packets.
struct Sink<'f, 'w> {
    file: Option<&'f mut (dyn Write + 'w)>,
    form: Form,
    /// Bytes to write.
    ready: Vec<u8>,
}

/// Form of the output.
enum Form {
    None,
    Pcap(Format),
    Pcapng(Section),
}

impl<'f, 'w> Sink<'f, 'w> {
    fn new(
        inputs: &mut [Input],
        output: Option<&'f mut Output<'w>>,
        options: &Options,
    ) -> Sink<'f, 'w> {
        let mut ready = Vec::new();
        let Some(output) = output else {
            return Sink {
                file: None,
                form: Form::None,
                ready,
            };
        };
        let form = match output.format {
            Format::Pcap(header) => {
                let capture = Format::Pcap(header);
                Encoder::new(output.format, capture, options.snaplen).start_file(&mut ready);
                Form::Pcap(output.format)
            }
            Format::Pcapng => {
                let first = inputs.first_mut().map(Input::first_interface);
                let order = match first {
                    Some(Ok(Some(interface))) => interface.order,
                    // A fault comes to light where the capture is read.
                    _ => ByteOrder::NATIVE,
                };
                Form::Pcapng(Section::start(order, options.snaplen, &mut ready))
            }
        };
        Sink {
            file: Some(output.file),
            form,
            ready,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.ready)?;
            file.flush()?;
        }
        self.ready.clear();
        Ok(())
    }
}
