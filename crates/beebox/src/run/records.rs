//! Records that programs hand to the host through ring buffers.

use super::ObjectMap;

/// A record of a ring buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Name of the map.
    pub map: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Takes the complete records of all ring buffers.
pub(super) fn take<'m>(maps: impl Iterator<Item = &'m ObjectMap>) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for map in maps {
        let Some(ring) = map.map.operations().ring() else {
            continue;
        };
        records.extend(
            std::iter::from_fn(|| ring.consume()).map(|bytes| RunRecord {
                map: map.def.name.clone(),
                bytes,
            }),
        );
    }
    records
}
