//! The rows of a batch: the columns of packets that meet the conditions.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use beebox::internal::captures::{LinkType, Record, flow_fields};
use beebox::{Packet, PacketResult, Program, Runner};

use super::column::{Builder, Needs, Row};
use super::condition::Test;
use super::map_value::MapValue;
use super::stream::{Plan, Records, Stop, metadata};
use crate::codec::Codec;

/// The rows of a batch, and the program that runs on its packets.
pub(super) struct Rows<'p> {
    runner: Option<Runner<'p>>,
    needs_fields: bool,
    records: Option<(&'p Records, Vec<Vec<u8>>)>,
    columns: Columns<'p>,
    most: usize,
}

/// Captured bytes in a batch: larger ones take memory that is new each time.
const MOST_BYTES: usize = 8 << 20;

impl<'p> Rows<'p> {
    pub(super) fn new(plan: &'p Plan) -> Rows<'p> {
        let program = plan.program.as_ref().filter(|_| plan.runs());
        let mut runner = program.map(Program::next_runner);
        if let (Some(runner), Some(_)) = (&mut runner, &plan.records) {
            // Those of runs before belong to no packet.
            runner.take_records();
        }
        Rows {
            runner,
            needs_fields: plan.needs(Needs::Fields),
            records: plan.records.as_ref().map(|records| (records, Vec::new())),
            columns: Columns::new(plan),
            most: plan.batch_size,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.columns.len >= self.most || self.columns.bytes >= MOST_BYTES
    }

    #[inline]
    pub(super) fn push(
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
            return self.columns.push(&row, matched).map(|_| ());
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
            if self.columns.push(&row, matched)? {
                taken.push(written.bytes);
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let record = self.records.iter().map(|(records, taken)| {
            let rows: Vec<&[u8]> = taken.iter().map(|bytes| &bytes[..]).collect();
            match &records.codec {
                Some(codec) => codec.arrow_array(&rows),
                None => Arc::new(BinaryArray::from_iter_values(rows)),
            }
        });
        let all = self.columns.finish().chain(record).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.columns.len));
        RecordBatch::try_new_with_options(schema.clone(), all, &options)
    }
}

/// The columns but that of the records.
struct Columns<'p> {
    test: Test<'p>,
    chosen: Vec<Builder>,
    matches: Vec<BooleanBuilder>,
    map_values: Vec<(&'p MapValue, Vec<Option<Vec<u8>>>)>,
    has_data: bool,
    len: usize,
    /// Captured bytes and values of maps in the batch.
    bytes: usize,
}

impl<'p> Columns<'p> {
    fn new(plan: &'p Plan) -> Columns<'p> {
        let chosen = plan.columns.iter();
        Columns {
            test: Test::new(&plan.conditions),
            chosen: chosen
                .map(|(_, _, value)| value.builder(plan.batch_size))
                .collect(),
            matches: plan.matches.iter().map(|_| BooleanBuilder::new()).collect(),
            map_values: plan.map_values.iter().map(|it| (it, Vec::new())).collect(),
            has_data: plan.columns.iter().any(|(name, ..)| *name == "data"),
            len: 0,
            bytes: 0,
        }
    }

    /// Adds a row, if it meets the conditions.
    fn push(&mut self, row: &Row<'_>, matched: &[bool]) -> Result<bool, Stop> {
        if !self.test.is_met(row, matched) {
            return Ok(false);
        }
        if self.has_data {
            self.bytes += row.record.data().len();
        }
        for column in &mut self.chosen {
            column.push(row);
        }
        for (column, matched) in self.matches.iter_mut().zip(matched) {
            column.append_value(*matched);
        }
        for (map_value, column) in &mut self.map_values {
            let value = map_value.bytes();
            let value =
                value.map_err(|error| Stop(format!("packet at byte {}: {error}", row.offset)))?;
            self.bytes += value.as_ref().map_or(0, Vec::len);
            column.push(value);
        }
        self.len += 1;
        Ok(true)
    }

    fn finish(&mut self) -> impl Iterator<Item = ArrayRef> {
        let chosen = self.chosen.iter_mut().map(Builder::finish);
        let matches = self.matches.iter_mut();
        let matches = matches.map(|built| Arc::new(built.finish()) as ArrayRef);
        let map_values = self.map_values.iter();
        chosen
            .chain(matches)
            .chain(map_values.map(|(map_value, rows)| map_value.array(rows)))
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
