//! The packet of a run: bytes with room around them, as drivers and sockets lay them out.

/// Bytes in front of a packet (`XDP_PACKET_HEADROOM`), for headers that programs add.
pub const HEADROOM: usize = 256;

/// Most bytes of a packet of XDP that lie in one piece in a test run: a page without
/// [`HEADROOM`] and the kernel's own 320 bytes at the end.
pub const MAX_LINEAR: usize = 3520;

/// A packet: a linear part, which programs address, and fragments behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketBuffer {
    bytes: Vec<u8>,
    /// Where the linear part begins in `bytes`.
    start: usize,
    fragments: Vec<u8>,
}

impl PacketBuffer {
    /// A packet in one piece.
    pub fn linear(data: &[u8]) -> PacketBuffer {
        PacketBuffer::with_linear_part(data, data.len())
    }

    /// A packet of which at most so many bytes are linear.
    pub fn with_linear_part(data: &[u8], most: usize) -> PacketBuffer {
        let (linear, fragments) = data.split_at(most.min(data.len()));
        let mut bytes = Vec::with_capacity(HEADROOM + linear.len());
        bytes.resize(HEADROOM, 0);
        bytes.extend_from_slice(linear);
        PacketBuffer {
            bytes,
            start: HEADROOM,
            fragments: fragments.to_vec(),
        }
    }

    /// Bytes of the whole packet.
    pub fn len(&self) -> usize {
        self.linear_len() + self.fragments.len()
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the linear part.
    pub fn linear_len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The linear part.
    pub fn linear_part(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.bytes[self.start..], &self.fragments].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_linear_stays_behind() {
        let data: Vec<u8> = (0..=255).cycle().take(4000).collect();
        let mut packet = PacketBuffer::with_linear_part(&data, MAX_LINEAR);
        assert_eq!(packet.linear_part().len(), MAX_LINEAR);
        packet.linear_part()[0] = 7;
        let all = packet.to_vec();
        assert_eq!((all.len(), packet.len()), (4000, 4000));
        assert_eq!((all[0], &all[1..]), (7, &data[1..]));
    }
}
