//! Regions: bytes of the host at model addresses.

use vm::PacketBuffer;

/// Permissions of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Readable.
    ReadOnly,
    /// Readable and writable.
    ReadWrite,
}

/// Identifier of a region of a [`Memory`](super::Memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(pub(super) usize);

/// Name, address range and permissions of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// Name.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Permissions.
    pub permission: Permission,
}

/// Bytes at addresses from a first one on.
pub(super) struct Region<'m> {
    pub(super) start: u64,
    pub(super) bytes: Bytes<'m>,
}

/// Storage of a region's bytes.
pub(super) enum Bytes<'m> {
    ReadOnly(&'m [u8]),
    ReadWrite(&'m mut [u8]),
    Packet(&'m mut PacketBuffer),
    Frame(Box<[u8]>),
}

impl Bytes<'_> {
    pub(super) fn permission(&self) -> Permission {
        match self {
            Bytes::ReadOnly(_) => Permission::ReadOnly,
            Bytes::ReadWrite(_) | Bytes::Packet(_) | Bytes::Frame(_) => Permission::ReadWrite,
        }
    }

    #[inline(always)]
    pub(super) fn readable(&self) -> &[u8] {
        match self {
            Bytes::ReadOnly(bytes) => bytes,
            Bytes::ReadWrite(bytes) => bytes,
            Bytes::Packet(packet) => packet.visible(),
            Bytes::Frame(bytes) => bytes,
        }
    }

    #[inline(always)]
    pub(super) fn writable(&mut self) -> Option<&mut [u8]> {
        match self {
            Bytes::ReadOnly(_) => None,
            Bytes::ReadWrite(bytes) => Some(bytes),
            Bytes::Packet(packet) => Some(packet.visible_mut()),
            Bytes::Frame(bytes) => Some(bytes),
        }
    }
}

impl Region<'_> {
    pub(super) fn len(&self) -> u64 {
        self.bytes.readable().len() as u64
    }

    /// Number of addresses between the region and the bytes from `first` to `last`; 0 if
    /// they touch.
    pub(super) fn distance(&self, first: u64, last: u64) -> u64 {
        let end = self.start + self.len();
        first
            .saturating_sub(end.saturating_sub(1))
            .max(self.start.saturating_sub(last))
    }

    /// Number of bytes from `first` to `last` that lie in the region.
    pub(super) fn overlap(&self, first: u64, last: u64) -> u64 {
        let end = self.start + self.len();
        let after = last.saturating_add(1);
        after.min(end).saturating_sub(first.max(self.start))
    }
}
