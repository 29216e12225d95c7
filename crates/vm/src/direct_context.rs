//! The context that verified programs get in native code.

use std::ptr;

use crate::PacketBuffer;

/// Bytes of the largest structure that a context stands for (`struct __sk_buff`).
const FIELDS: usize = 192;

/// Context of a kind of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKind {
    /// `struct xdp_md`.
    Xdp,
    /// `struct __sk_buff`.
    SkBuff,
}

/// A context that carries a packet: the packet's bounds as pointers, then the structure
/// that the program was written for, whose fields keep their offsets there.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectContext {
    data: u64,
    data_end: u64,
    data_meta: u64,
    /// Address of the packet; 0 without one.
    packet: u64,
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
            packet: 0,
            fields,
        }
    }

    /// The structure, as the program left it.
    pub fn structure(&self) -> &[u8] {
        &self.fields
    }

    /// Sets the packet, which programs then change through the context: the caller keeps it
    /// borrowed for the run.
    pub fn set_packet(&mut self, packet: &mut PacketBuffer) {
        self.packet = ptr::from_mut(packet).expose_provenance() as u64;
        self.set_bounds(packet);
    }

    /// Sets bounds and length to those of a packet that was moved.
    pub(crate) fn set_bounds(&mut self, packet: &mut PacketBuffer) {
        let buffer = packet.address();
        [self.data_meta, self.data, self.data_end] = packet.bounds(buffer);
        (packet.context()).set_len(&mut self.fields, packet.len() as u32);
    }

    /// The address of the packet; 0 without one.
    pub(crate) fn packet(&self) -> u64 {
        self.packet
    }
}
