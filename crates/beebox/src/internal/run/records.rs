//! Records that programs hand to the host through ring buffers and perf buffers.

use ::kernel::maps::Ring;

use super::ObjectMap;

/// A record of a ring buffer or a perf buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Name of the map.
    pub map: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// True for maps that hand records to the host.
pub(super) fn has_some(map: &ObjectMap) -> bool {
    map.map.of_kind::<Ring>().is_some() || !map.perf_buffers.is_empty()
}

/// Takes the complete records of all ring buffers, and of the perf buffers of a CPU.
pub(super) fn take(maps: &[&ObjectMap], cpu: u32) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for map in maps {
        let record = |bytes: Vec<u8>| RunRecord {
            map: map.def.name.clone(),
            bytes,
        };
        if let Some(ring) = map.map.of_kind::<Ring>() {
            records.extend(std::iter::from_fn(|| ring.consume()).map(record));
        }
        if let Some(buffer) = map.perf_buffers.get(cpu as usize) {
            let waiting = std::iter::from_fn(|| buffer.read());
            records.extend(waiting.map(|bytes| record(bytes.into_vec())));
        }
    }
    records
}
