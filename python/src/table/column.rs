//! The columns of captures, and the arrays that they become.
//!
//! A column is a row of [`COLUMNS`]: its name and the value of a packet, from which type and array
//! follow. What a column needs is computed for a packet only if one is chosen that needs it.

use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, StringBuilder, TimestampNanosecondBuilder, UInt8Builder, UInt16Builder,
    UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, TimeUnit};
use beebox::internal::captures::{FlowFields, LinkType, Record, packet_metadata, payload_offset};
use beebox::internal::run::redirect_text;
use beebox::{Packet, PacketResult};

use super::BATCH;

/// A packet, as the columns see it.
#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    pub(super) file: &'r str,
    /// Offset of its record in the capture.
    pub(super) offset: u64,
    pub(super) record: &'r Record<'r>,
    /// Its fields, if a column needs them.
    pub(super) fields: FlowFields<'r>,
    /// The run of the program on it.
    pub(super) run: Option<PacketResult>,
    /// The map of the program's record.
    pub(super) map: Option<&'r str>,
}

/// What a column needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// The record in the capture.
    Record,
    /// The header fields.
    Fields,
    /// A run of a program.
    Run,
    /// The records that a program writes.
    Records,
}

/// The value of a column.
#[derive(Clone, Copy)]
pub(super) enum Value {
    U8(fn(&Row<'_>) -> Option<u8>),
    U16(fn(&Row<'_>) -> Option<u16>),
    U32(fn(&Row<'_>) -> Option<u32>),
    U64(fn(&Row<'_>) -> Option<u64>),
    /// Nanoseconds since 1970.
    Time(fn(&Row<'_>) -> Option<i64>),
    /// Writes text; false if there is none.
    Text(fn(&Row<'_>, &mut StringBuilder) -> bool),
    Bytes(for<'r> fn(&Row<'r>) -> &'r [u8]),
}

/// The columns by name.
pub(super) const COLUMNS: &[(&str, Needs, Value)] = &[
    (
        "file",
        Needs::Record,
        Value::Text(|row, text| text.write_str(row.file).is_ok()),
    ),
    ("offset", Needs::Record, Value::U64(|row| Some(row.offset))),
    ("time", Needs::Record, Value::Time(time)),
    (
        "interface",
        Needs::Record,
        Value::U32(|row| Some(row.record.interface_id())),
    ),
    ("link_type", Needs::Record, Value::Text(link_type)),
    (
        "captured_length",
        Needs::Record,
        Value::U32(|row| Some(row.record.data().len() as u32)),
    ),
    (
        "wire_length",
        Needs::Record,
        Value::U32(|row| Some(row.record.wire_len())),
    ),
    (
        "destination_mac",
        Needs::Record,
        Value::Text(|row, text| mac(row, 0, text)),
    ),
    (
        "source_mac",
        Needs::Record,
        Value::Text(|row, text| mac(row, 6, text)),
    ),
    ("vlan", Needs::Fields, Value::U16(|row| row.fields.vlan)),
    (
        "ethertype",
        Needs::Fields,
        Value::U16(|row| row.fields.ethertype),
    ),
    (
        "source",
        Needs::Fields,
        Value::Text(|row, text| address(row.fields.source, text)),
    ),
    (
        "destination",
        Needs::Fields,
        Value::Text(|row, text| address(row.fields.destination, text)),
    ),
    (
        "protocol",
        Needs::Fields,
        Value::U8(|row| row.fields.protocol),
    ),
    (
        "source_port",
        Needs::Fields,
        Value::U16(|row| Some(row.fields.ports?.0)),
    ),
    (
        "destination_port",
        Needs::Fields,
        Value::U16(|row| Some(row.fields.ports?.1)),
    ),
    (
        "tcp_flags",
        Needs::Fields,
        Value::U8(|row| row.fields.tcp_flags),
    ),
    ("payload_offset", Needs::Record, Value::U32(payload)),
    ("data", Needs::Record, Value::Bytes(|row| row.record.data())),
    ("verdict", Needs::Run, Value::Text(verdict)),
    (
        "return_value",
        Needs::Run,
        Value::U32(|row| Some(row.run?.retval)),
    ),
    ("redirect", Needs::Run, Value::Text(redirect)),
    (
        "map",
        Needs::Records,
        Value::Text(|row, text| text.write_str(row.map.unwrap_or("")).is_ok()),
    ),
];

/// The columns that are chosen if none are named.
pub(super) const USUAL: &[&str] = &[
    "file",
    "offset",
    "time",
    "interface",
    "captured_length",
    "wire_length",
    "vlan",
    "ethertype",
    "source",
    "destination",
    "protocol",
    "source_port",
    "destination_port",
];

impl<'r> Row<'r> {
    /// A packet whose fields are not computed.
    pub(super) fn new(file: &'r str, offset: u64, record: &'r Record<'r>) -> Row<'r> {
        Row {
            file,
            offset,
            record,
            fields: FlowFields::default(),
            run: None,
            map: None,
        }
    }
}

fn time(row: &Row<'_>) -> Option<i64> {
    let time = row.record.timestamp()?;
    let nanoseconds = time.seconds.checked_mul(1_000_000_000)?;
    nanoseconds.checked_add(time.nanoseconds.into())
}

fn link_type(row: &Row<'_>, text: &mut StringBuilder) -> bool {
    write!(text, "{}", row.record.interface().link_type).is_ok()
}

fn payload(row: &Row<'_>) -> Option<u32> {
    let record = row.record;
    let meta = packet_metadata(record.interface(), record.interface_id(), record.data());
    let offset = payload_offset(&Packet::captured(record.data(), record.wire_len(), &meta));
    (offset > 0).then_some(offset)
}

fn mac(row: &Row<'_>, at: usize, text: &mut StringBuilder) -> bool {
    let is_ethernet = row.record.interface().link_type == LinkType::ETHERNET;
    let Some(mac) = row.record.data().get(at..at + 6).filter(|_| is_ethernet) else {
        return false;
    };
    for (place, byte) in mac.iter().enumerate() {
        let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
        let colon = if place > 0 { ":" } else { "" };
        let pair = [digit(byte >> 4), digit(byte & 15)];
        if text.write_str(colon).is_err() || pair.iter().any(|it| text.write_char(*it).is_err()) {
            return false;
        }
    }
    true
}

/// Writes an address of 4 or 16 bytes.
fn address(bytes: Option<&[u8]>, text: &mut StringBuilder) -> bool {
    match bytes {
        Some(&[a, b, c, d]) => {
            let mut written = [b'.'; 15];
            let mut len = 0;
            for byte in [a, b, c, d] {
                for (unit, digit) in [(100, byte / 100), (10, byte / 10 % 10), (1, byte % 10)] {
                    if byte >= unit || unit == 1 {
                        written[len] = b'0' + digit;
                        len += 1;
                    }
                }
                len += 1;
            }
            str::from_utf8(&written[..len - 1]).is_ok_and(|it| text.write_str(it).is_ok())
        }
        Some(bytes) => {
            let address = <[u8; 16]>::try_from(bytes).map(Ipv6Addr::from);
            address.is_ok_and(|address| write!(text, "{address}").is_ok())
        }
        None => false,
    }
}

fn verdict(row: &Row<'_>, text: &mut StringBuilder) -> bool {
    row.run
        .is_some_and(|run| text.write_str(&run.verdict.name()).is_ok())
}

fn redirect(row: &Row<'_>, text: &mut StringBuilder) -> bool {
    let redirect = row.run.and_then(|run| run.redirect);
    redirect.is_some_and(|it| text.write_str(&redirect_text(it)).is_ok())
}

impl Value {
    pub(super) fn arrow_type(self) -> DataType {
        match self {
            Value::U8(_) => DataType::UInt8,
            Value::U16(_) => DataType::UInt16,
            Value::U32(_) => DataType::UInt32,
            Value::U64(_) => DataType::UInt64,
            Value::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Value::Text(_) => DataType::Utf8,
            Value::Bytes(_) => DataType::Binary,
        }
    }

    /// A builder for so many rows, in memory that grows where there are many.
    pub(super) fn builder(self, rows: usize) -> Builder {
        let rows = rows.min(BATCH);
        match self {
            Value::U8(get) => Builder::U8(get, UInt8Builder::with_capacity(rows)),
            Value::U16(get) => Builder::U16(get, UInt16Builder::with_capacity(rows)),
            Value::U32(get) => Builder::U32(get, UInt32Builder::with_capacity(rows)),
            Value::U64(get) => Builder::U64(get, UInt64Builder::with_capacity(rows)),
            Value::Time(get) => {
                let built = TimestampNanosecondBuilder::with_capacity(rows);
                Builder::Time(get, built.with_timezone("UTC"))
            }
            Value::Text(get) => Builder::Text(get, StringBuilder::with_capacity(rows, 16 * rows)),
            Value::Bytes(get) => Builder::Bytes(get, BinaryBuilder::with_capacity(rows, 0)),
        }
    }
}

/// The values of a column so far.
pub(super) enum Builder {
    U8(fn(&Row<'_>) -> Option<u8>, UInt8Builder),
    U16(fn(&Row<'_>) -> Option<u16>, UInt16Builder),
    U32(fn(&Row<'_>) -> Option<u32>, UInt32Builder),
    U64(fn(&Row<'_>) -> Option<u64>, UInt64Builder),
    Time(fn(&Row<'_>) -> Option<i64>, TimestampNanosecondBuilder),
    Text(fn(&Row<'_>, &mut StringBuilder) -> bool, StringBuilder),
    Bytes(for<'r> fn(&Row<'r>) -> &'r [u8], BinaryBuilder),
}

impl Builder {
    #[inline]
    pub(super) fn push(&mut self, row: &Row<'_>) {
        match self {
            Builder::U8(get, built) => built.append_option(get(row)),
            Builder::U16(get, built) => built.append_option(get(row)),
            Builder::U32(get, built) => built.append_option(get(row)),
            Builder::U64(get, built) => built.append_option(get(row)),
            Builder::Time(get, built) => built.append_option(get(row)),
            Builder::Text(get, built) => match get(row, built) {
                true => built.append_value(""),
                false => built.append_null(),
            },
            Builder::Bytes(get, built) => built.append_value(get(row)),
        }
    }

    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::U8(_, built) => Arc::new(built.finish()),
            Builder::U16(_, built) => Arc::new(built.finish()),
            Builder::U32(_, built) => Arc::new(built.finish()),
            Builder::U64(_, built) => Arc::new(built.finish()),
            Builder::Time(_, built) => Arc::new(built.finish()),
            Builder::Text(_, built) => Arc::new(built.finish()),
            Builder::Bytes(_, built) => Arc::new(built.finish()),
        }
    }
}
