//! Captures as batches of Arrow.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use beebox::captures::PacketCounts;
use beebox::internal::captures::{
    FilterCaptureError, FilterSource, Packets, PacketsError, Record, flow_fields, packet_metadata,
};
use beebox::{Metadata, Packet, Program};

use super::column::{Needs, Row, Value};
use super::condition::{Condition, Test};
use super::map_value::MapValue;
use super::rows::Rows;
use super::source::Source;
use crate::codec::Codec;
use crate::errors::Fault;

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
    /// Columns of values in maps.
    pub(super) map_values: Vec<MapValue>,
    /// Rows of a batch.
    pub(super) batch_size: usize,
}

/// The records of a program as rows.
pub(super) struct Records {
    /// Their type; bytes without one.
    pub(super) codec: Option<Codec>,
}

impl Plan {
    /// Refuses two columns of one name, and a column without.
    pub(super) fn check_names(&self) -> Result<(), Fault> {
        let schema = self.schema();
        let mut names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|it| it.name().as_str())
            .collect();
        names.sort_unstable();
        if names.first() == Some(&"") {
            return Err(Fault::of_type("a column has an empty name"));
        }
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Fault::of_type(format!(
                "two columns are called {:?}",
                pair[0]
            ))),
            None => Ok(()),
        }
    }

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
        let map_values = self.map_values.iter().map(MapValue::field);
        let all = columns.chain(matches).chain(map_values).chain(record);
        Arc::new(Schema::new(all.collect::<Vec<_>>()))
    }

    pub(super) fn needs(&self, what: Needs) -> bool {
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
    pub(super) fn runs(&self) -> bool {
        self.records.is_some() || !self.map_values.is_empty() || self.needs(Needs::Run)
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
pub(super) struct Stop(pub(super) String);

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
pub(super) fn metadata(record: &Record<'_>) -> Metadata {
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
            if rows.len() > 0 {
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
