//! What an observer learns of an address: the object that it is in, and the bytes there.

use super::memory::{GAP, Memory};

/// The object that an address is in, with the offset in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPlace {
    /// The packet, from its first byte: metadata in front of it has negative offsets, and what lies
    /// behind the last byte offsets beyond it.
    Packet(i64),
    /// The context.
    Context(u64),
    /// A stack frame: its number, 0 for that of the entry function, and the distance below its end.
    Stack {
        /// Number of the frame.
        frame: usize,
        /// Bytes from the address to the end of the frame.
        below: u64,
    },
    /// A value or key of a map, or a record of a ring buffer.
    Value {
        /// Index of the map.
        map: u32,
        /// Address of the first byte.
        start: u64,
        /// Bytes that it has.
        len: usize,
        /// Offset of the address.
        offset: u64,
        /// True for a key.
        is_key: bool,
    },
    /// A map.
    Map(u32),
    /// A function of the program that runs, by its first slot.
    Function(usize),
    /// Another region.
    Region {
        /// Its name.
        name: String,
        /// Offset of the address.
        offset: u64,
    },
}

impl Memory<'_> {
    /// Copies the bytes at an address, without noting that they were read; false if they are not
    /// all in one object.
    pub fn peek(&self, address: u64, into: &mut [u8]) -> bool {
        if self.read_shared(address, into).is_some() {
            return true;
        }
        match self.read(address, into.len() as u64) {
            Ok(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            Err(_) => self.read_given(address, into).unwrap_or(false),
        }
    }

    /// True for an address of what a test gives.
    pub fn is_given(&self, address: u64) -> bool {
        self.given
            .is_some_and(|given| given.place(address).is_some())
    }

    /// Name of the member of an object that a test gives, which so many bytes at an address are, 0 for that which
    /// begins there.
    pub fn given_member(&self, address: u64, len: usize) -> Option<String> {
        self.given?.member_name(address, len)
    }

    /// The object that an address is in or ends at; `None` for a number that is no address.
    pub fn place(&self, address: u64) -> Option<MemoryPlace> {
        if let Some(place) = self.value_place(address) {
            return Some(place);
        }
        if let Some(map) = self.map_at(address) {
            return Some(MemoryPlace::Map(map));
        }
        if let Some([start, data, end]) = self.packet_bounds()
            && (start..=end).contains(&address)
        {
            return Some(MemoryPlace::Packet(address.wrapping_sub(data) as i64));
        }
        if let Some((name, offset)) = self.given.and_then(|given| given.place(address)) {
            return Some(MemoryPlace::Region { name, offset });
        }
        let Some((id, region)) = self.region_at(address) else {
            return self.place_beside(address);
        };
        let offset = address - region.start;
        Some(match self.kind_of_region(id) {
            RegionKind::Context => MemoryPlace::Context(offset),
            RegionKind::Frame(frame) => MemoryPlace::Stack {
                frame,
                below: region.len - offset,
            },
            RegionKind::Other => MemoryPlace::Region {
                name: region.name,
                offset,
            },
        })
    }
    /// A place that is in no region: of a function, or close behind the packet.
    fn place_beside(&self, address: u64) -> Option<MemoryPlace> {
        let [_, data, end] = self.packet_bounds().unwrap_or_default();
        if end > 0 && (end..end.saturating_add(GAP)).contains(&address) {
            return Some(MemoryPlace::Packet((address - data) as i64));
        }
        let slot = self.slot_at(address).filter(|slot| *slot < MOST_SLOTS)?;
        Some(MemoryPlace::Function(slot))
    }
}

/// Most instructions of a program (`BPF_COMPLEXITY_LIMIT_INSNS`).
const MOST_SLOTS: usize = 1_000_000;

/// What a region is to an observer.
pub(super) enum RegionKind {
    Context,
    Frame(usize),
    Other,
}
