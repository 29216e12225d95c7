//! Contexts that carry a packet: structures in which Linux puts the packet's addresses.
//!
//! A field that Linux rewrites to a load of a pointer (`data`, `data_end`, `data_meta`)
//! has four bytes, as in the structure: the lower half of the address. The checked engine adds
//! the upper half to what a program loads from it ([`PacketContext::is_address`]). Native code
//! loads pointers from a [`DirectContext`](crate::DirectContext) instead.

/// Layout of a context that carries a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketContext {
    /// Bytes of the structure.
    pub size: usize,
    data: usize,
    data_end: usize,
    data_meta: usize,
    /// Field that has the packet's length, if there is one.
    len: Option<usize>,
    /// Helpers can load bytes of the packet.
    pub is_loadable: bool,
}

/// `struct xdp_md`.
pub const XDP: PacketContext = PacketContext {
    size: 24,
    data: 0,
    data_end: 4,
    data_meta: 8,
    len: None,
    is_loadable: true,
};

/// `struct __sk_buff`.
pub const SKB: PacketContext = PacketContext {
    size: 192,
    data: 76,
    data_end: 80,
    data_meta: 140,
    len: Some(0),
    is_loadable: true,
};

/// `struct __sk_buff` as a test run gives it to flow dissectors, without a socket buffer.
pub const FLOW_DISSECTOR: PacketContext = PacketContext {
    len: None,
    is_loadable: false,
    ..SKB
};

impl PacketContext {
    /// True for offsets of fields that stand for an address of the packet.
    pub fn is_address(&self, offset: usize) -> bool {
        [self.data, self.data_end, self.data_meta].contains(&offset)
    }

    /// Puts the lower halves of the addresses of a packet's metadata, first byte and end of the
    /// linear part into a context, and the length of all of it.
    pub fn set_packet(&self, context: &mut [u8], bounds: [u64; 3], len: u32) {
        let [meta, data, end] = bounds.map(|address| address as u32);
        put(context, self.data_meta, meta);
        put(context, self.data, data);
        put(context, self.data_end, end);
        self.set_len(context, len);
    }

    /// Puts the length of the packet into a context that has it.
    pub fn set_len(&self, context: &mut [u8], len: u32) {
        if let Some(at) = self.len {
            put(context, at, len);
        }
    }
}

fn put(context: &mut [u8], at: usize, value: u32) {
    if let Some(field) = context.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{SKB, XDP};

    #[test]
    fn contexts_hold_the_packets_addresses() {
        for context in [XDP, SKB] {
            let mut bytes = vec![0; context.size];
            context.set_packet(&mut bytes, [0x0ff8, 0x1000, 0x103c], 60);
            let field = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(field(context.data_end) - field(context.data), 60);
            assert_eq!(field(context.data_meta), 0x0ff8);
        }
    }
}
