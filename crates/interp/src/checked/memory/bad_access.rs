//! Invalid accesses, and why they are.

use super::RegionInfo;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Update,
}

impl Access {
    /// A verb for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "reads",
            Access::Write => "writes",
            Access::Update => "updates",
        }
    }
}

/// Reason why an access is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessError {
    /// No byte lies in a region.
    Outside,
    /// Only this many bytes lie in a region.
    Crosses(u64),
    /// A write to a read-only region.
    ReadOnly,
    /// An atomic access that is not aligned to its size.
    Misaligned,
    /// The address range wraps around.
    Wraps,
    /// The object is one that a test gives, without these bytes; the region has their name.
    NotGiven,
    /// A borrow of a map value, which other threads may change: it can only be copied.
    Shared,
}

/// An invalid access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Kind of access.
    pub access: Access,
    /// Reason.
    pub error: AccessError,
    /// The region that holds some of the bytes, otherwise the nearest one.
    pub nearest: Option<RegionInfo>,
}

/// A region does not fit into the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Length of the region in bytes.
    pub len: usize,
}
