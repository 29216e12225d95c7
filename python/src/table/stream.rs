//! Captures as batches of Arrow.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use beebox::captures::PacketCounts;
use beebox::internal::captures::{
    FilterCaptureError, FilterSource, LinkType, Packets, PacketsError, Record, flow_fields,
    packet_metadata,
};

use beebox::{Metadata, Packet, PacketResult, Program, Runner};

use super::column::{Builder, Needs, Row, Value};
use super::condition::{Condition, Test};
use super::source::Source;
use crate::codec::Codec;

/// A filter that threads share.
pub(super) type SharedFilter = Arc<dyn FilterSource + Send>;

/// What becomes of captures.
pub(super) struct Plan {
    /// The chosen columns.
    pub(super) columns: Vec<(&'static str, Needs, Value)>,
    pub(super) filter: Option<SharedFilter>,
    /// Columns of filters that match, by name.
    pub(super) matches: Vec<(String, SharedFilter)>,
    /// What rows meet.
    pub(super) conditions: Vec<Condition>,
    pub(super) program: Option<Program>,
    /// The type of the program's records, if there is a row for each of them.
    pub(super) records: Option<Records>,
    /// Rows of a batch.
    pub(super) batch_size: usize,
}

/// The records of a program as rows.
pub(super) struct Records {
    /// Their type; bytes without one.
    pub(super) codec: Option<Codec>,
}

impl Plan {
    pub(super) fn schema(&self) -> SchemaRef {
        let columns = self.columns.iter();
        let columns = columns.map(|(name, _, value)| Field::new(*name, value.arrow_type(), true));
        let matches = self.matches.iter();
        let matches = matches.map(|(name, _)| Field::new(name, DataType::Boolean, false));
        let record = self.records.iter().map(|records| {
            let codec = records.codec.as_ref();
            let arrow_type = codec.map_or(DataType::Binary, Codec::arrow_type);
            Field::new("record", arrow_type, false)
        });
        Arc::new(Schema::new(
            columns.chain(matches).chain(record).collect::<Vec<_>>(),
        ))
    }

    fn needs(&self, what: Needs) -> bool {
        let tested = self.conditions.iter().map(Condition::needs);
        let mut all = self
            .columns
            .iter()
            .map(|(_, needs, _)| *needs)
            .chain(tested);
        all.any(|needs| needs == what)
    }

    /// The filters that have a column.
    fn match_filters(&self) -> Vec<&dyn FilterSource> {
        let matches = self.matches.iter();
        matches.map(|(_, filter)| &**filter as _).collect()
    }

    /// True if the program runs on the packets.
    fn runs(&self) -> bool {
        self.records.is_some() || self.needs(Needs::Run)
    }
}

/// A part of a capture: its start, the size of parts and the length of the capture.
pub(super) type PartOf = (u64, u64, u64);

/// The batches of captures, one capture after the other.
pub(super) struct Stream {
    plan: Arc<Plan>,
    schema: SchemaRef,
    sources: VecDeque<Arc<Source>>,
    part: Option<PartOf>,
    current: Option<(String, Packets)>,
    /// Why it ends, behind the rows before it.
    stop: Option<String>,
}

/// Why a capture is not read on.
struct Stop(String);

impl From<PacketsError> for Stop {
    fn from(error: PacketsError) -> Stop {
        Stop(error.to_string())
    }
}

impl Stream {
    pub(super) fn new(plan: Arc<Plan>, sources: &[Arc<Source>], part: Option<PartOf>) -> Stream {
        Stream {
            schema: plan.schema(),
            plan,
            sources: sources.iter().cloned().collect(),
            part,
            current: None,
            stop: None,
        }
    }

    /// Adds rows until the batch is full; false if no capture is left.
    fn fill(&mut self, rows: &mut Rows<'_>) -> Result<bool, String> {
        let plan = self.plan.clone();
        let filter = plan.filter.as_deref();
        let matches = plan.match_filters();
        while !rows.is_full() {
            if self.current.is_none() {
                let Some(source) = self.sources.pop_front() else {
                    return Ok(false);
                };
                let name = source.name();
                let packets = open(&source, self.part);
                let packets = packets.map_err(|error| at_file(&name, &error.to_string()))?;
                self.current = Some((name, packets));
            }
            let Some((name, packets)) = &mut self.current else {
                continue;
            };
            let filter = filter.map(|filter| filter as &dyn FilterSource);
            let read = packets.read(filter, &matches, |offset, record, matched| {
                rows.push(name, offset, record, matched)?;
                Ok(!rows.is_full())
            });
            match read {
                Ok(true) => {}
                Ok(false) => self.current = None,
                Err(Stop(stop)) => return Err(at_file(name, &stop)),
            }
        }
        Ok(true)
    }
}

/// The packets of a capture, or of a part of it.
fn open(source: &Source, part: Option<PartOf>) -> Result<Packets, PacketsError> {
    let input = source.open().map_err(FilterCaptureError::Capture)?;
    match part {
        None => Ok(Packets::new(input)),
        Some((start, size, len)) => Packets::of_part(input, (start, size), len),
    }
}

/// What the kernel tells of a packet beside its bytes.
fn metadata(record: &Record<'_>) -> Metadata {
    packet_metadata(record.interface(), record.interface_id(), record.data())
}

/// The packets that become rows, counted, and the offsets of the first record and of the one behind
/// the last. No program runs.
pub(super) fn count(
    source: &Source,
    plan: &Plan,
    part: Option<PartOf>,
) -> Result<(PacketCounts, (u64, u64)), PacketsError> {
    let (name, mut packets) = (source.name(), open(source, part)?);
    let filter = plan.filter.as_deref().map(|filter| filter as _);
    if plan.conditions.is_empty() {
        while packets.read(filter, &[], |_, _, _| Ok::<_, PacketsError>(true))? {}
        return Ok((packets.counts(), packets.offsets()));
    }
    let (matches, mut test) = (plan.match_filters(), Test::new(&plan.conditions));
    let needs_fields = plan.needs(Needs::Fields);
    let (mut matched, mut matched_bytes) = (0, 0);
    while packets.read(filter, &matches, |offset, record, columns| {
        let meta;
        let mut row = Row::new(&name, offset, record);
        if needs_fields {
            meta = metadata(record);
            row.fields = flow_fields(&Packet::captured(record.data(), record.wire_len(), &meta));
        }
        if test.is_met(&row, columns) {
            matched += 1;
            matched_bytes += record.data().len() as u64;
        }
        Ok::<_, PacketsError>(true)
    })? {}
    let counts = PacketCounts {
        matched,
        matched_bytes,
        ..packets.counts()
    };
    Ok((counts, packets.offsets()))
}

/// A fault with its file, unless it names it.
pub(super) fn at_file(name: &str, stop: &str) -> String {
    match stop.contains(name) {
        true => stop.to_owned(),
        false => format!("{name}: {stop}"),
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stop.is_none() {
            let plan = self.plan.clone();
            let mut rows = Rows::new(&plan);
            if let Err(stop) = self.fill(&mut rows) {
                self.current = None;
                self.sources.clear();
                self.stop = Some(stop);
            }
            if rows.len > 0 {
                return Some(rows.finish(&self.schema));
            }
        }
        let stop = self.stop.take()?;
        Some(Err(ArrowError::ExternalError(stop.into())))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The rows of a batch.
struct Rows<'p> {
    columns: Vec<Builder>,
    matches: Vec<BooleanBuilder>,
    runner: Option<Runner<'p>>,
    records: Option<(&'p Records, Vec<Vec<u8>>)>,
    test: Test<'p>,
    needs_fields: bool,
    has_data: bool,
    len: usize,
    /// Captured bytes in the batch.
    bytes: usize,
    most: usize,
}

/// Captured bytes in a batch: larger ones take memory that is new each time.
const MOST_BYTES: usize = 8 << 20;

impl<'p> Rows<'p> {
    fn new(plan: &'p Plan) -> Rows<'p> {
        let size = plan.batch_size;
        let columns = plan.columns.iter();
        let program = plan.program.as_ref().filter(|_| plan.runs());
        let mut runner = program.map(Program::next_runner);
        if let (Some(runner), Some(_)) = (&mut runner, &plan.records) {
            // Those of runs before belong to no packet.
            runner.take_records();
        }
        Rows {
            columns: columns.map(|(_, _, value)| value.builder(size)).collect(),
            matches: plan.matches.iter().map(|_| BooleanBuilder::new()).collect(),
            runner,
            records: plan.records.as_ref().map(|records| (records, Vec::new())),
            test: Test::new(&plan.conditions),
            needs_fields: plan.needs(Needs::Fields),
            has_data: plan.columns.iter().any(|(name, ..)| *name == "data"),
            len: 0,
            bytes: 0,
            most: size,
        }
    }

    fn is_full(&self) -> bool {
        self.len >= self.most || self.bytes >= MOST_BYTES
    }

    #[inline]
    fn push(
        &mut self,
        file: &str,
        offset: u64,
        record: &Record<'_>,
        matched: &[bool],
    ) -> Result<(), Stop> {
        let meta;
        let mut row = Row::new(file, offset, record);
        if self.needs_fields {
            meta = metadata(record);
            row.fields = flow_fields(&Packet::captured(record.data(), record.wire_len(), &meta));
        }
        // The program sees the packets that conditions leave out, as its maps count them.
        if let Some(runner) = &mut self.runner {
            row.run = Some(run(runner, &row)?);
        }
        let Some((records, taken)) = &mut self.records else {
            if !self.test.is_met(&row, matched) {
                return Ok(());
            }
            if self.has_data {
                self.bytes += record.data().len();
            }
            add(&mut self.columns, &mut self.matches, &row, matched);
            self.len += 1;
            return Ok(());
        };
        let written = self.runner.iter_mut().flat_map(Runner::take_records);
        for written in written {
            let size = written.bytes.len();
            let expected = records.codec.as_ref().map_or(0, Codec::size);
            if size < expected {
                let map = &written.map;
                let sizes = format!("has {size} bytes, and its type {expected}");
                let what = format!("packet at byte {offset}: a record of map {map} {sizes}");
                return Err(Stop(what));
            }
            let row = Row {
                map: Some(&written.map),
                ..row
            };
            if !self.test.is_met(&row, matched) {
                continue;
            }
            if self.has_data {
                self.bytes += record.data().len();
            }
            add(&mut self.columns, &mut self.matches, &row, matched);
            taken.push(written.bytes);
            self.len += 1;
        }
        Ok(())
    }

    fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter_mut().map(Builder::finish);
        let matches = self.matches.iter_mut();
        let matches = matches.map(|built| Arc::new(built.finish()) as ArrayRef);
        let record = self.records.iter().map(|(records, taken)| {
            let rows: Vec<&[u8]> = taken.iter().map(|bytes| &bytes[..]).collect();
            match &records.codec {
                Some(codec) => codec.arrow_array(&rows),
                None => Arc::new(arrow_array::BinaryArray::from_iter_values(rows)),
            }
        });
        let all = columns.chain(matches).chain(record).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        RecordBatch::try_new_with_options(schema.clone(), all, &options)
    }
}

fn add(columns: &mut [Builder], matches: &mut [BooleanBuilder], row: &Row<'_>, matched: &[bool]) {
    for column in columns {
        column.push(row);
    }
    for (column, matched) in matches.iter_mut().zip(matched) {
        column.append_value(*matched);
    }
}

/// Runs the program on a packet at its time.
fn run(runner: &mut Runner<'_>, row: &Row<'_>) -> Result<PacketResult, Stop> {
    let (record, offset) = (row.record, row.offset);
    let failed = |why: &dyn fmt::Display| Stop(format!("packet at byte {offset}: {why}"));
    let link_type = record.interface().link_type;
    if link_type != LinkType::ETHERNET {
        let why = format!("link type {link_type}; programs run on Ethernet frames");
        return Err(failed(&why));
    }
    let time = record.timestamp().map_or(0, |time| {
        let seconds = u64::try_from(time.seconds).unwrap_or(0);
        let seconds = seconds.saturating_mul(1_000_000_000);
        seconds.saturating_add(time.nanoseconds.into())
    });
    let result = runner.run_at(record.data(), time);
    result.map_err(|error| failed(&error))
}
