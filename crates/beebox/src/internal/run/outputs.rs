//! Printed texts and records of runs, shown by their types.

use std::io;

use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use serde_json::json;

use super::spool::{Spool, SpoolItem};
use super::{PacketRun, PrintedText, RunRecord};
use crate::internal::maps_json::{Ordered, RecordTypes};

/// What runs handed over beside verdicts.
#[derive(Default)]
pub struct RunOutputs {
    /// Printed texts.
    pub texts: Spool,
    /// Records of ring and perf buffers.
    pub records: Spool,
    /// Names of the maps that records are of, by number.
    maps: Vec<String>,
}

impl RunOutputs {
    /// Adds what the run on a packet of a capture printed, and the records that it handed over.
    pub fn add(&mut self, run: PacketRun<'_>) {
        self.add_of(run.packet, run.printk, run.records);
    }

    /// Adds those of a run on the packet of this number, 0 for none.
    pub fn add_of(&mut self, packet: u64, printed: &PrintedText, records: &[RunRecord]) {
        self.texts.lost += printed.lost;
        for text in &printed.texts {
            self.texts.add(packet, 0, text.as_bytes());
        }
        for record in records {
            let known = self.maps.iter().position(|map| *map == record.map);
            let map = known.unwrap_or_else(|| {
                self.maps.push(record.map.clone());
                self.maps.len() - 1
            });
            self.records.add(packet, map as u32, &record.bytes);
        }
    }

    /// Why some of it could not be kept, if that is so: there was no room.
    pub fn fault(&self) -> Option<&io::Error> {
        self.texts.fault().or(self.records.fault())
    }

    /// A record, with the number of its packet.
    pub fn record_of(&self, item: SpoolItem) -> (u64, RunRecord) {
        let record = RunRecord {
            map: self.maps[item.map as usize].clone(),
            bytes: item.bytes,
        };
        (item.packet, record)
    }
}

/// The texts as a list of JSON, with their packets if they are of a capture.
pub struct TextList<'o>(
    /// The texts.
    pub &'o RunOutputs,
);

impl Serialize for TextList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_items(self.0.texts.items(), serializer, |item| {
            let text = String::from_utf8_lossy(&item.bytes).into_owned();
            match item.packet {
                0 => json!({ "text": text }),
                packet => json!({ "packet": packet, "text": text }),
            }
        })
    }
}

/// The records as a list of JSON.
pub struct RecordList<'o> {
    /// The records.
    pub outputs: &'o RunOutputs,
    /// Their types.
    pub types: &'o RecordTypes<'o>,
}

impl Serialize for RecordList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_items(self.outputs.records.items(), serializer, |item| {
            let (packet, record) = self.outputs.record_of(item);
            let mut members = Vec::new();
            if packet != 0 {
                members.push(("packet".to_owned(), Ordered::Scalar(json!(packet))));
            }
            members.push(("map".to_owned(), Ordered::Scalar(json!(record.map))));
            members.push(("value".to_owned(), self.types.show(&record)));
            Ordered::Object(members)
        })
    }
}

fn serialize_items<S: Serializer, T: Serialize>(
    items: impl Iterator<Item = io::Result<SpoolItem>>,
    serializer: S,
    show: impl Fn(SpoolItem) -> T,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for item in items {
        list.serialize_element(&show(item.map_err(S::Error::custom)?))?;
    }
    list.end()
}
