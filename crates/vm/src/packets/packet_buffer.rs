//! The packet of a run: bytes with headroom and tailroom, as drivers and sockets lay them out.
//!
//! Positions count from the start of the buffer, as the kernel's header offsets do. A
//! packet that needs more gets it in front or behind, which moves all positions.

use std::borrow::Cow;

use packet::Metadata;

use crate::{PacketContext, PacketState};

/// Bytes in front of a packet (`XDP_PACKET_HEADROOM`), for headers that programs add.
pub const HEADROOM: usize = 256;

/// A packet: a linear part, which programs address, metadata in front of it, and fragments
/// behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketBuffer {
    context: PacketContext,
    bytes: Vec<u8>,
    meta: usize,
    start: usize,
    end: usize,
    fragments: Vec<Vec<u8>>,
    moves: u32,
    /// Bounds and moves when it was filled: until it is moved, the bytes outside these bounds
    /// are zero.
    filled: (usize, usize, u32),
    /// Its metadata outside the context.
    pub state: PacketState,
}

impl PacketBuffer {
    /// A packet in one piece, with so many bytes of headroom and tailroom.
    pub fn new(
        context: PacketContext,
        data: &[u8],
        headroom: usize,
        tailroom: usize,
    ) -> PacketBuffer {
        let mut packet = PacketBuffer {
            context,
            bytes: Vec::with_capacity(headroom + data.len() + tailroom),
            meta: 0,
            start: 0,
            end: 0,
            fragments: Vec::new(),
            moves: 0,
            filled: (0, 0, 0),
            state: PacketState::default(),
        };
        packet.refill(data, headroom, tailroom);
        packet
    }

    /// Replaces the packet by another one, in the same memory.
    #[inline]
    pub fn refill(&mut self, data: &[u8], headroom: usize, tailroom: usize) {
        let end = headroom + data.len();
        let (from, to, moves) = self.filled;
        let is_zero_outside = from == headroom && moves == self.moves;
        if is_zero_outside && self.bytes.len() == end + tailroom {
            self.bytes[headroom..end].copy_from_slice(data);
            if to > end {
                self.bytes[end..to].fill(0);
            }
        } else {
            self.refill_all(data, headroom, tailroom);
        }
        if !self.fragments.is_empty() {
            self.fragments.clear();
        }
        self.filled = (headroom, end, self.moves);
        (self.meta, self.start, self.end) = (headroom, headroom, end);
        self.state.reset(headroom);
    }

    /// Sets all bytes of the buffer.
    fn refill_all(&mut self, data: &[u8], headroom: usize, tailroom: usize) {
        self.bytes.clear();
        self.bytes.resize(headroom, 0);
        self.bytes.extend_from_slice(data);
        self.bytes.resize(headroom + data.len() + tailroom, 0);
    }

    /// Adds a fragment behind the packet.
    pub fn add_fragment(&mut self, bytes: &[u8]) {
        self.fragments.push(bytes.to_vec());
    }

    /// Layout of the context that programs get with it.
    pub fn context(&self) -> PacketContext {
        self.context
    }

    /// Bytes of the whole packet, without metadata.
    pub fn len(&self) -> usize {
        let fragments: usize = self.fragments.iter().map(Vec::len).sum();
        self.linear_len() + fragments
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the linear part.
    pub fn linear_len(&self) -> usize {
        self.end - self.start
    }

    /// Bytes of metadata.
    pub fn metadata_len(&self) -> usize {
        self.start - self.meta
    }

    /// Position of the first byte.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Position behind the last byte of the linear part.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Bytes of the buffer.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Fragments.
    pub fn fragments(&self) -> usize {
        self.fragments.len()
    }

    /// The bytes of a fragment.
    pub fn fragment(&self, number: usize) -> Option<&[u8]> {
        self.fragments.get(number).map(Vec::as_slice)
    }

    /// The bytes of a fragment, to change.
    pub fn fragment_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        self.fragments.get_mut(number).map(Vec::as_mut_slice)
    }

    /// The fragment that has so many bytes at an offset of the packet, and their offset in it;
    /// `None` if they are in several pieces or in the linear part.
    pub fn fragment_at(&self, offset: usize, len: usize) -> Option<(usize, usize)> {
        let mut offset = offset.checked_sub(self.linear_len())?;
        for (number, fragment) in self.fragments.iter().enumerate() {
            if offset < fragment.len() {
                return (offset + len <= fragment.len()).then_some((number, offset));
            }
            offset -= fragment.len();
        }
        None
    }

    /// Number of moves in the buffer: pointers from before are no longer those
    /// of the packet.
    pub fn moves(&self) -> u32 {
        self.moves
    }

    /// Metadata and linear part.
    #[inline(always)]
    pub fn visible(&self) -> &[u8] {
        &self.bytes[self.meta..self.end]
    }

    /// Metadata and linear part, to change.
    #[inline(always)]
    pub fn visible_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.meta..self.end]
    }

    /// The linear part.
    pub fn linear(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The linear part, to change.
    pub fn linear_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// The bytes of the buffer up to the end of the linear part.
    pub fn up_to_end(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// The bytes of the buffer in front of the packet.
    pub fn before(&self) -> &[u8] {
        &self.bytes[..self.start]
    }

    /// Bytes at the offset of a packet load, in the linear part or the room in front of it:
    /// negative offsets count from the network or the link-layer header
    /// ([`Metadata::offset_of_load`]). `None` outside.
    pub fn bytes_at_offset(&self, offset: i32, len: usize) -> Option<&[u8]> {
        let from_start = |header: usize| header as i32 - self.start as i32;
        let headers = Metadata {
            network_header: from_start(self.state.network_header),
            link_header: Some(from_start(self.state.link_header)),
            ..Metadata::UNKNOWN
        };
        let from = self.start as i64 + headers.offset_of_load(offset)?;
        let from = usize::try_from(from).ok()?;
        self.up_to_end().get(from..from.checked_add(len)?)
    }

    /// The address of the buffer on the host.
    pub(crate) fn address(&mut self) -> u64 {
        self.bytes.as_mut_ptr().expose_provenance() as u64
    }

    /// Addresses of metadata, first byte and end of the linear part, in a buffer at an
    /// address.
    pub(crate) fn bounds(&self, buffer: u64) -> [u64; 3] {
        [self.meta, self.start, self.end].map(|position| buffer + position as u64)
    }

    /// All bytes, without metadata; copied only if there are fragments.
    pub fn contents(&self) -> Cow<'_, [u8]> {
        match self.fragments.is_empty() {
            true => Cow::Borrowed(self.linear()),
            false => Cow::Owned(self.to_vec()),
        }
    }

    /// All bytes, without metadata.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = self.linear().to_vec();
        for fragment in &self.fragments {
            all.extend_from_slice(fragment);
        }
        all
    }

    /// Reads bytes at an offset; false if the packet ends before.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(into.len()) else {
            return false;
        };
        if end <= self.linear_len() {
            into.copy_from_slice(&self.linear()[offset..end]);
            return true;
        }
        if end > self.len() {
            return false;
        }
        let mut rest = into;
        let mut skip = offset;
        for piece in [self.linear()]
            .into_iter()
            .chain(self.fragments.iter().map(Vec::as_slice))
        {
            let from = &piece[skip.min(piece.len())..];
            skip -= skip.min(piece.len());
            let (now, later) = rest.split_at_mut(from.len().min(rest.len()));
            now.copy_from_slice(&from[..now.len()]);
            rest = later;
        }
        true
    }

    /// Writes bytes at an offset; false if the packet ends before.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        if offset
            .checked_add(bytes.len())
            .is_none_or(|end| end > self.len())
        {
            return false;
        }
        let linear = &mut self.bytes[self.start..self.end];
        let mut rest = bytes;
        let mut skip = offset;
        for piece in [linear]
            .into_iter()
            .chain(self.fragments.iter_mut().map(Vec::as_mut_slice))
        {
            let len = piece.len();
            let to = &mut piece[skip.min(len)..];
            skip -= skip.min(len);
            let (now, later) = rest.split_at(to.len().min(rest.len()));
            to[..now.len()].copy_from_slice(now);
            rest = later;
        }
        true
    }

    /// Sets the positions of metadata, first byte and end of the linear part.
    ///
    /// # Panics
    /// If they are not in this order in the buffer.
    pub fn set_bounds(&mut self, meta: usize, start: usize, end: usize) {
        assert!(meta <= start && start <= end && end <= self.bytes.len());
        (self.meta, self.start, self.end) = (meta, start, end);
        self.moves = self.moves.wrapping_add(1);
    }

    /// Moves first byte and metadata to another position.
    ///
    /// # Panics
    /// If the metadata does not fit into the buffer in front of it.
    pub fn move_start(&mut self, start: usize) {
        let meta = start - self.metadata_len();
        self.bytes.copy_within(self.meta..self.start, meta);
        self.set_bounds(meta, start, self.end.max(start));
    }

    /// Makes sure that there are so many bytes in front of the first one.
    ///
    /// A larger buffer has a multiple of 64 bytes more. As in Linux (`pskb_expand_head`), a
    /// transport header that is not known, whose position is the last 16-bit number, becomes
    /// known by that, in front of the packet or in it.
    pub fn reserve_head(&mut self, count: usize) {
        let missing = count.saturating_sub(self.meta).next_multiple_of(64);
        if missing == 0 {
            return;
        }
        self.bytes.splice(0..0, std::iter::repeat_n(0, missing));
        self.state.link_header += missing;
        self.state.network_header += missing;
        let transport = self.state.transport_header.map(|header| header + missing);
        self.state.transport_header = Some(transport.unwrap_or(missing - 1));
        let [meta, start, end] = [self.meta, self.start, self.end].map(|at| at + missing);
        self.set_bounds(meta, start, end);
    }

    /// Sets the length of the linear part; new bytes are zero.
    pub fn set_linear_len(&mut self, len: usize) {
        let (old, end) = (self.end, self.start + len);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.set_bounds(self.meta, self.start, end);
        if old < end {
            self.bytes[old..end].fill(0);
        }
    }

    /// Inserts zeros at an offset of the linear part: what is in front moves into the room
    /// in front. The linear part may end before the offset, with room behind it.
    pub fn insert(&mut self, offset: usize, count: usize) {
        self.reserve_head(count);
        if self.bytes.len() < self.start + offset {
            self.bytes.resize(self.start + offset, 0);
        }
        let start = self.start - count;
        self.bytes
            .copy_within(self.start..self.start + offset, start);
        self.bytes[start + offset..self.start + offset].fill(0);
        self.set_bounds(start, start, self.end);
    }

    /// Removes bytes at an offset of the linear part: what is in front moves up.
    ///
    /// # Panics
    /// If the linear part ends before the last of them.
    pub fn remove(&mut self, offset: usize, count: usize) {
        let start = self.start + count;
        assert!(start + offset <= self.end, "fewer bytes than are removed");
        self.bytes
            .copy_within(self.start..self.start + offset, start);
        self.set_bounds(start, start, self.end);
    }

    /// Moves metadata and linear part so many bytes into the room in front.
    ///
    /// # Panics
    /// If there is less room.
    pub fn shift(&mut self, count: usize) {
        let [meta, start, end] = [self.meta, self.start, self.end].map(|at| at - count);
        self.bytes.copy_within(self.meta..self.end, meta);
        self.set_bounds(meta, start, end);
    }

    /// Moves the first so many bytes of the fragments behind the linear part; those that are
    /// empty then are dropped.
    ///
    /// # Panics
    /// If the fragments have fewer bytes, or there is less room behind the linear part.
    pub fn pull(&mut self, count: usize) {
        let mut end = self.end;
        let mut rest = count;
        while rest != 0 {
            let first = &mut self.fragments[0];
            let taken = rest.min(first.len());
            self.bytes[end..end + taken].copy_from_slice(&first[..taken]);
            first.drain(..taken);
            if first.is_empty() {
                self.fragments.remove(0);
            }
            (end, rest) = (end + taken, rest - taken);
        }
        self.set_bounds(self.meta, self.start, end);
    }

    /// Bytes of the last fragment.
    pub fn last_fragment(&mut self) -> Option<&mut Vec<u8>> {
        self.fragments.last_mut()
    }

    /// Removes the last fragment.
    pub fn drop_last_fragment(&mut self) {
        self.fragments.pop();
    }

    /// Records the length of the link-layer header.
    pub fn measure_link_header(&mut self) {
        self.state.measured_link_header = self.link_header_len();
    }

    /// Bytes from the link-layer header to the network header.
    pub fn link_header_len(&self) -> usize {
        self.state
            .network_header
            .saturating_sub(self.state.link_header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SKB, XDP};

    #[test]
    fn fragments_are_behind_the_linear_part() {
        let data: Vec<u8> = (0..=255).cycle().take(4000).collect();
        let mut packet = PacketBuffer::new(XDP, &data[..3520], HEADROOM, 0);
        packet.add_fragment(&data[3520..3600]);
        packet.add_fragment(&data[3600..]);
        assert_eq!((packet.len(), packet.linear_len()), (4000, 3520));
        let mut bytes = [0; 200];
        assert!(packet.read(3500, &mut bytes));
        assert_eq!(bytes, data[3500..3700]);
        assert!(!packet.read(3801, &mut bytes));
        assert!(packet.write(3515, &[7; 100]));
        assert!(!packet.write(4000, &[7]));
        let all = packet.to_vec();
        assert_eq!(all[3515..3615], [7; 100]);
        assert_eq!((&all[..3515], &all[3615..]), (&data[..3515], &data[3615..]));
    }

    #[test]
    fn another_packet_finds_no_bytes_of_the_one_before() {
        const ROOM: usize = 64;
        let mut packet = PacketBuffer::new(XDP, &[7; 40], HEADROOM, ROOM - 40);
        let changes: [fn(&mut PacketBuffer); 4] = [
            |packet| packet.visible_mut().fill(9),
            |packet| packet.move_start(HEADROOM - 8),
            |packet| packet.set_linear_len(ROOM),
            |packet| packet.reserve_head(HEADROOM + 1),
        ];
        for change in changes {
            for len in [ROOM, 20, 40] {
                change(&mut packet);
                packet.visible_mut().fill(9);
                packet.refill(&[5; ROOM][..len], HEADROOM, ROOM - len);
                assert_eq!(packet.linear(), &[5; ROOM][..len]);
                assert_eq!(packet.before(), [0; HEADROOM]);
                assert_eq!(packet.bytes.len(), HEADROOM + ROOM);
                assert!(packet.bytes[packet.end..].iter().all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn headers_move_into_the_room_in_front() {
        let mut packet = PacketBuffer::new(SKB, b"linknetwork", 2, 0);
        packet.state.network_header += 4;
        packet.insert(4, 3);
        assert_eq!(packet.linear(), b"link\0\0\0network");
        assert_eq!(packet.state.network_header - packet.start(), 7);
        packet.remove(4, 3);
        assert_eq!(packet.linear(), b"linknetwork");
        packet.set_linear_len(4);
        packet.set_linear_len(8);
        assert_eq!(packet.linear(), b"link\0\0\0\0");
    }
}
