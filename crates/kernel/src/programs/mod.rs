//! Contexts of program types: the structure that a program sees, with the packet's
//! addresses where Linux puts them.
//!
//! A field that Linux rewrites to a load of a pointer (`data`, `data_end`, `data_meta`)
//! has four bytes here, as in the structure, and the packet lies below 2^32 in the model
//! address space of the checked engine.

mod packet;
mod test_run;
mod verdict;

pub use packet::{HEADROOM, MAX_LINEAR, PacketBuffer};
pub use test_run::{LINK_HEADER, PacketInput, PacketProgram};
pub use verdict::{PacketVerdict, verdict};

/// A context that carries a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketContext {
    /// Bytes of the structure.
    pub size: usize,
    data: usize,
    data_end: usize,
    data_meta: usize,
    /// Field that has the packet's length, if there is one.
    len: Option<usize>,
}

/// `struct xdp_md`.
pub const XDP: PacketContext = PacketContext {
    size: 24,
    data: 0,
    data_end: 4,
    data_meta: 8,
    len: None,
};

/// `struct __sk_buff`.
pub const SKB: PacketContext = PacketContext {
    size: 192,
    data: 76,
    data_end: 80,
    data_meta: 140,
    len: Some(0),
};

impl PacketContext {
    /// Puts the address and length of a packet's linear part into a context of
    /// [`Self::size`] bytes, without metadata, and the length of all of it.
    pub fn set_packet(&self, context: &mut [u8], address: u32, linear: u32, all: u32) {
        let mut put = |at: usize, value: u32| {
            if let Some(field) = context.get_mut(at..at + 4) {
                field.copy_from_slice(&value.to_le_bytes());
            }
        };
        put(self.data, address);
        put(self.data_meta, address);
        put(self.data_end, address.wrapping_add(linear));
        if let Some(at) = self.len {
            put(at, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SKB, XDP};

    #[test]
    fn contexts_hold_the_packets_addresses() {
        for context in [XDP, SKB] {
            let mut bytes = vec![0; context.size];
            context.set_packet(&mut bytes, 0x1000, 60, 60);
            let field = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(field(context.data_end) - field(context.data), 60);
            assert_eq!(field(context.data_meta), 0x1000);
        }
    }
}
