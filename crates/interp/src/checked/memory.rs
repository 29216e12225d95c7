//! The memory of a checked run: regions in a model address space.
//!
//! Regions get addresses by the order in which they are added, never those of
//! the host: the first one stands at 0x10000000, each next one at the next
//! multiple of 0x100000 that leaves 64 KiB free before it, so that no constant
//! offset leads from one region into another. Frame `n` of the stack ends at
//! 0x01000200 + n × 0x10000. All of it lies below 2^32; functions have addresses
//! above, where no memory is.
//!
//! Finding the region of an access costs one comparison when it is the one that
//! the same base register met last, and a search through all of them otherwise.

use std::borrow::Cow;

use vm::FRAME_BYTES;

const FIRST_FRAME: u64 = 0x0100_0000;
const FRAME_STRIDE: u64 = 0x1_0000;
const FIRST_REGION: u64 = 0x1000_0000;
const REGION_ALIGNMENT: u64 = 0x10_0000;
const GAP: u64 = 0x1_0000;
const END: u64 = 0xf000_0000;

/// What a program did to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It read.
    Read,
    /// It wrote.
    Write,
    /// It read and wrote in one step.
    Update,
}

impl Access {
    /// What it did, as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "reads",
            Access::Write => "writes",
            Access::Update => "updates",
        }
    }
}

/// What a program may do to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Read it.
    ReadOnly,
    /// Read and write it.
    ReadWrite,
}

/// A region that was added to a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId(usize);

/// Where a region stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPlace {
    /// Its name.
    pub name: String,
    /// Its first address.
    pub start: u64,
    /// Its length in bytes.
    pub len: u64,
    /// What may be done to it.
    pub permission: Permission,
}

/// Why an access may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// None of its bytes are in a region.
    Outside,
    /// Only this many of its bytes are in a region.
    Crosses(u64),
    /// It writes to a region that is only for reading.
    ReadOnly,
    /// It is atomic and not aligned to its size.
    Misaligned,
    /// It goes beyond the last address there is.
    Wraps,
}

/// An access that may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// What was done.
    pub access: Access,
    /// Why it may not be.
    pub flaw: Flaw,
    /// The region that holds some of the bytes, or else the nearest one.
    pub nearest: Option<RegionPlace>,
}

/// The address space has no room for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Bytes of the region.
    pub len: usize,
}

/// Memory that a program can reach: regions of the caller, and while it runs
/// the frames of its stack.
#[derive(Default)]
pub struct Memory<'m> {
    /// The caller's regions, then the frames.
    regions: Vec<Region<'m>>,
    /// Of the caller's regions.
    names: Vec<Cow<'m, str>>,
    frames: usize,
    /// Frames that were used and can be used again.
    spare: Vec<Box<[u8]>>,
}

struct Region<'m> {
    start: u64,
    bytes: Bytes<'m>,
}

enum Bytes<'m> {
    ReadOnly(&'m [u8]),
    ReadWrite(&'m mut [u8]),
    Frame(Box<[u8]>),
}

impl Bytes<'_> {
    #[inline(always)]
    fn readable(&self) -> &[u8] {
        match self {
            Bytes::ReadOnly(bytes) => bytes,
            Bytes::ReadWrite(bytes) => bytes,
            Bytes::Frame(bytes) => bytes,
        }
    }

    #[inline(always)]
    fn writable(&mut self) -> Option<&mut [u8]> {
        match self {
            Bytes::ReadOnly(_) => None,
            Bytes::ReadWrite(bytes) => Some(bytes),
            Bytes::Frame(bytes) => Some(bytes),
        }
    }
}

impl Region<'_> {
    fn len(&self) -> u64 {
        self.bytes.readable().len() as u64
    }

    /// How many addresses lie between the region and the bytes from `first` to
    /// `last`; none if they touch.
    fn distance(&self, first: u64, last: u64) -> u64 {
        let end = self.start + self.len();
        first
            .saturating_sub(end.saturating_sub(1))
            .max(self.start.saturating_sub(last))
    }

    /// How many of the bytes from `first` to `last` are in it.
    fn overlap(&self, first: u64, last: u64) -> u64 {
        let end = self.start + self.len();
        let after = last.saturating_add(1);
        after.min(end).saturating_sub(first.max(self.start))
    }
}

impl<'m> Memory<'m> {
    /// Memory without a region.
    pub fn new() -> Memory<'m> {
        Memory::default()
    }

    /// Adds bytes that programs may read.
    pub fn add_read_only(
        &mut self,
        name: impl Into<Cow<'m, str>>,
        bytes: &'m [u8],
    ) -> Result<RegionId, NoRoom> {
        self.push(name.into(), Bytes::ReadOnly(bytes))
    }

    /// Adds bytes that programs may read and write.
    pub fn add(
        &mut self,
        name: impl Into<Cow<'m, str>>,
        bytes: &'m mut [u8],
    ) -> Result<RegionId, NoRoom> {
        self.push(name.into(), Bytes::ReadWrite(bytes))
    }

    fn push(&mut self, name: Cow<'m, str>, bytes: Bytes<'m>) -> Result<RegionId, NoRoom> {
        self.drop_frames();
        let start = self.regions.last().map_or(FIRST_REGION, |last| {
            (last.start + last.len() + GAP).next_multiple_of(REGION_ALIGNMENT)
        });
        let len = bytes.readable().len();
        if len as u64 > END.saturating_sub(start) {
            return Err(NoRoom { len });
        }
        self.regions.push(Region { start, bytes });
        self.names.push(name);
        Ok(RegionId(self.regions.len() - 1))
    }

    /// The first address of a region.
    pub fn address(&self, region: RegionId) -> u64 {
        self.regions[region.0].start
    }

    /// Where everything stands, the frames of a run that is under way (or was
    /// the last) included.
    pub fn places(&self) -> impl Iterator<Item = RegionPlace> {
        (0..self.regions.len()).map(|index| self.place(index))
    }

    fn place(&self, index: usize) -> RegionPlace {
        let region = &self.regions[index];
        RegionPlace {
            name: match self.names.get(index) {
                Some(name) => name.to_string(),
                None => format!("stack frame {}", index - self.names.len()),
            },
            start: region.start,
            len: region.len(),
            permission: match region.bytes {
                Bytes::ReadOnly(_) => Permission::ReadOnly,
                _ => Permission::ReadWrite,
            },
        }
    }

    /// `len` bytes at an address.
    pub fn read(&self, address: u64, len: u64) -> Result<&[u8], BadAccess> {
        let found = self.locate(address, len).map(|index| {
            let region = &self.regions[index];
            let offset = (address - region.start) as usize;
            &region.bytes.readable()[offset..offset + len as usize]
        });
        found.ok_or_else(|| self.fault(address, len, Access::Read))
    }

    /// `len` bytes at an address, to be written.
    pub fn write(&mut self, address: u64, len: u64) -> Result<&mut [u8], BadAccess> {
        let writable = self
            .locate(address, len)
            .filter(|index| !matches!(self.regions[*index].bytes, Bytes::ReadOnly(_)));
        let Some(index) = writable else {
            return Err(self.fault(address, len, Access::Write));
        };
        let region = &mut self.regions[index];
        let offset = (address - region.start) as usize;
        let bytes = region.bytes.writable().unwrap_or_default();
        Ok(&mut bytes[offset..offset + len as usize])
    }
}

/// What the engine does.
impl Memory<'_> {
    /// The `N` bytes at an address, as a little-endian number; `hint` is where
    /// the last access went.
    #[inline(always)]
    pub(super) fn load<const N: usize>(
        &self,
        hint: &mut usize,
        address: u64,
    ) -> Result<u64, BadAccess> {
        if let Some(region) = self.regions.get(*hint)
            && let Some(value) = peek::<N>(region, address)
        {
            return Ok(value);
        }
        self.load_elsewhere::<N>(hint, address)
    }

    #[cold]
    #[inline(never)]
    fn load_elsewhere<const N: usize>(
        &self,
        hint: &mut usize,
        address: u64,
    ) -> Result<u64, BadAccess> {
        if let Some(index) = self.locate(address, N as u64)
            && let Some(value) = peek::<N>(&self.regions[index], address)
        {
            *hint = index;
            return Ok(value);
        }
        Err(self.fault(address, N as u64, Access::Read))
    }

    /// Writes the low `N` bytes of a value.
    #[inline(always)]
    pub(super) fn store<const N: usize>(
        &mut self,
        hint: &mut usize,
        address: u64,
        value: u64,
    ) -> Result<(), BadAccess> {
        if let Some(region) = self.regions.get_mut(*hint)
            && let Some(bytes) = slot::<N>(region, address)
        {
            *bytes = low_bytes(value);
            return Ok(());
        }
        self.store_elsewhere::<N>(hint, address, value)
    }

    #[cold]
    #[inline(never)]
    fn store_elsewhere<const N: usize>(
        &mut self,
        hint: &mut usize,
        address: u64,
        value: u64,
    ) -> Result<(), BadAccess> {
        if let Some(index) = self.locate(address, N as u64)
            && let Some(bytes) = slot::<N>(&mut self.regions[index], address)
        {
            *bytes = low_bytes(value);
            *hint = index;
            return Ok(());
        }
        Err(self.fault(address, N as u64, Access::Write))
    }

    /// Replaces the number at an address by what `update` makes of it, and
    /// returns the old one.
    pub(super) fn update<const N: usize>(
        &mut self,
        address: u64,
        update: impl FnOnce(u64) -> u64,
    ) -> Result<u64, BadAccess> {
        if address.is_multiple_of(N as u64)
            && let Some(index) = self.locate(address, N as u64)
            && let Some(bytes) = slot::<N>(&mut self.regions[index], address)
        {
            let old = number(bytes);
            *bytes = low_bytes(update(old));
            return Ok(old);
        }
        Err(self.fault(address, N as u64, Access::Update))
    }

    /// Forgets the frames of an earlier run.
    pub(super) fn drop_frames(&mut self) {
        while self.frames > 0 {
            self.pop_frame();
        }
    }

    /// Adds a frame; returns the address of its end.
    pub(super) fn push_frame(&mut self) -> u64 {
        let mut bytes = self
            .spare
            .pop()
            .unwrap_or_else(|| vec![0; FRAME_BYTES].into());
        bytes.fill(0);
        let start = FIRST_FRAME + self.frames as u64 * FRAME_STRIDE;
        self.regions.push(Region {
            start,
            bytes: Bytes::Frame(bytes),
        });
        self.frames += 1;
        start + FRAME_BYTES as u64
    }

    /// The index of the region that was added last.
    pub(super) fn newest(&self) -> usize {
        self.regions.len().saturating_sub(1)
    }

    /// Takes the last frame away.
    pub(super) fn pop_frame(&mut self) {
        if let Some(Region {
            bytes: Bytes::Frame(bytes),
            ..
        }) = self.regions.pop()
        {
            self.spare.push(bytes);
            self.frames -= 1;
        }
    }

    /// The region that holds all of these bytes. Frames, which come last, are
    /// met most.
    fn locate(&self, address: u64, len: u64) -> Option<usize> {
        self.regions.iter().rposition(|region| {
            let offset = address.wrapping_sub(region.start);
            offset <= region.len() && len <= region.len() - offset
        })
    }

    /// Says what is wrong with an access; one that could be made is misaligned.
    #[cold]
    pub(super) fn fault(&self, address: u64, size: u64, access: Access) -> BadAccess {
        let last = address.saturating_add(size.saturating_sub(1));
        let nearest = (0..self.regions.len())
            .min_by_key(|index| self.regions[*index].distance(address, last));
        let region = nearest.map(|index| &self.regions[index]);
        let overlap = region.map_or(0, |region| region.overlap(address, last));
        let flaw = if address.checked_add(size.saturating_sub(1)).is_none() {
            Flaw::Wraps
        } else if overlap == 0 {
            Flaw::Outside
        } else if overlap < size {
            Flaw::Crosses(overlap)
        } else if access != Access::Read
            && region.is_some_and(|region| matches!(region.bytes, Bytes::ReadOnly(_)))
        {
            Flaw::ReadOnly
        } else {
            Flaw::Misaligned
        };
        BadAccess {
            address,
            size,
            access,
            flaw,
            nearest: nearest.map(|index| self.place(index)),
        }
    }
}

#[inline(always)]
fn peek<const N: usize>(region: &Region<'_>, address: u64) -> Option<u64> {
    let offset = address.wrapping_sub(region.start) as usize;
    let bytes = region.bytes.readable().get(offset..)?;
    bytes.first_chunk::<N>().map(number)
}

#[inline(always)]
fn slot<'r, const N: usize>(region: &'r mut Region<'_>, address: u64) -> Option<&'r mut [u8; N]> {
    let offset = address.wrapping_sub(region.start) as usize;
    let bytes = region.bytes.writable()?.get_mut(offset..)?;
    bytes.first_chunk_mut::<N>()
}

#[inline(always)]
fn number<const N: usize>(bytes: &[u8; N]) -> u64 {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

#[inline(always)]
fn low_bytes<const N: usize>(value: u64) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&value.to_le_bytes()[..N]);
    bytes
}
