//! The context that verified programs get in native code.

/// Bytes of the largest structure that a context stands for (`struct __sk_buff`).
const FIELDS: usize = 192;

/// A context that carries a packet: the packet's bounds as pointers, then the structure
/// that the program was written for, whose fields keep their offsets there.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectContext {
    data: u64,
    data_end: u64,
    data_meta: u64,
    fields: [u8; FIELDS],
}

impl DirectContext {
    /// Offset of the pointer to the packet's first byte.
    pub const DATA: usize = std::mem::offset_of!(DirectContext, data);
    /// Offset of the pointer behind the packet's last byte.
    pub const DATA_END: usize = std::mem::offset_of!(DirectContext, data_end);
    /// Offset of the pointer to the packet's metadata.
    pub const DATA_META: usize = std::mem::offset_of!(DirectContext, data_meta);
    /// Offset of the structure.
    pub const STRUCTURE: usize = std::mem::offset_of!(DirectContext, fields);

    /// A context whose structure begins with these bytes; the rest are zero.
    ///
    /// # Panics
    /// If there are more bytes than a structure has.
    pub fn new(structure: &[u8]) -> DirectContext {
        let mut fields = [0; FIELDS];
        fields[..structure.len()].copy_from_slice(structure);
        DirectContext {
            data: 0,
            data_end: 0,
            data_meta: 0,
            fields,
        }
    }

    /// The structure, as the program left it.
    pub fn structure(&self) -> &[u8] {
        &self.fields
    }

    /// Sets the bounds of a packet without metadata.
    pub fn set_packet(&mut self, packet: &mut [u8]) {
        let bounds = packet.as_mut_ptr_range();
        self.data = bounds.start.expose_provenance() as u64;
        self.data_end = bounds.end.expose_provenance() as u64;
        self.data_meta = self.data;
    }
}
