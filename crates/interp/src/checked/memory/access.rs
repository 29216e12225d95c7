//! Accesses of the interpreter: loads and stores of numbers, the frames of the stack, and what a
//! bad access is beside.

use std::ops::Range;

use vm::{ArenaObject, FRAME_BYTES};

use super::{Access, AccessError, BadAccess, Bytes, Memory, Region, RegionId};

/// Accesses of the interpreter.
impl<'m> Memory<'m> {
    /// Loads `N` bytes at an address as a little-endian number, or an address of the packet from
    /// the field of the context that has its lower half; `hint` is the index of the region that
    /// was accessed last, which is never the context.
    #[inline(always)]
    pub(in crate::checked) fn load<const N: usize>(
        &self,
        hint: &mut usize,
        address: u64,
    ) -> Result<u64, BadAccess> {
        if let Some(region) = self.regions.get(*hint)
            && let Some(value) = peek::<N>(region, address)
        {
            return Ok(value);
        }
        self.load_after_search::<N>(hint, address)
    }

    #[cold]
    #[inline(never)]
    fn load_after_search<const N: usize>(
        &self,
        hint: &mut usize,
        address: u64,
    ) -> Result<u64, BadAccess> {
        if let Some(index) = self.locate(address, N as u64)
            && let Some(value) = peek::<N>(&self.regions[index], address)
        {
            if self.context == Some(RegionId(index)) {
                return Ok(match N == 4 && self.is_packet_address(index, address) {
                    true => self.addresses.regions & !u64::from(u32::MAX) | value,
                    false => value,
                });
            }
            *hint = index;
            return Ok(value);
        }
        let mut bytes = [0; N];
        if self.read_shared(address, &mut bytes).is_some() {
            return Ok(number(&bytes));
        }
        if self.load_all_given(address, &mut bytes)? {
            return Ok(number(&bytes));
        }
        Err(self.fault(address, N as u64, Access::Read))
    }

    /// True if the field of the context at an address stands for an address of the packet.
    fn is_packet_address(&self, context: usize, address: u64) -> bool {
        let offset = (address - self.regions[context].start) as usize;
        let packet = self.packet_buffer();
        packet.is_some_and(|packet| packet.context().is_address(offset))
    }

    /// Writes the low `N` bytes of a value.
    #[inline(always)]
    pub(in crate::checked) fn store<const N: usize>(
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
        self.store_after_search::<N>(hint, address, value)
    }

    #[cold]
    #[inline(never)]
    fn store_after_search<const N: usize>(
        &mut self,
        hint: &mut usize,
        address: u64,
        value: u64,
    ) -> Result<(), BadAccess> {
        if let Some(index) = self.locate(address, N as u64)
            && let Some(bytes) = slot::<N>(&mut self.regions[index], address)
        {
            *bytes = low_bytes(value);
            if self.context != Some(RegionId(index)) {
                *hint = index;
            }
            return Ok(());
        }
        if self.write_shared(address, &low_bytes::<N>(value)).is_some() {
            return Ok(());
        }
        if self.write_given(address, &low_bytes::<N>(value))? {
            return Ok(());
        }
        Err(self.fault(address, N as u64, Access::Write))
    }

    /// Replaces the number at an address by the result of `update`; returns the old number.
    pub(in crate::checked) fn update<const N: usize>(
        &mut self,
        address: u64,
        update: impl Fn(u64) -> u64,
    ) -> Result<u64, BadAccess> {
        if address.is_multiple_of(N as u64) {
            if let Some(index) = self.locate(address, N as u64)
                && let Some(bytes) = slot::<N>(&mut self.regions[index], address)
            {
                let old = number(bytes);
                *bytes = low_bytes(update(old));
                return Ok(old);
            }
            if let Some(old) = self.update_shared::<N>(address, &update) {
                return Ok(old);
            }
            if let Some(old) = self.update_given::<N>(address, &update)? {
                return Ok(old);
            }
        }
        Err(self.fault(address, N as u64, Access::Update))
    }

    /// The arena of the program.
    pub(in crate::checked) fn arena(&self) -> Option<&'m dyn ArenaObject> {
        self.arena
    }

    /// True if the 8 bytes at an address hold a pointer into the arena that was spilled there.
    pub(in crate::checked) fn is_spilled(&self, address: u64) -> bool {
        self.spilled.contains(&address)
    }

    /// Notes a write: the bytes hold no pointer into the arena afterwards, but for `is_pointer`
    /// 8 bytes in a frame.
    pub(in crate::checked) fn mark_spilled(&mut self, address: u64, len: u64, is_pointer: bool) {
        if !self.spilled.is_empty() {
            let overlapping = address.saturating_sub(7)..address.saturating_add(len);
            let overlapping: Vec<u64> = self.spilled.range(overlapping).copied().collect();
            for slot in overlapping {
                self.spilled.remove(&slot);
            }
        }
        if is_pointer && address.is_multiple_of(8) && self.is_on_stack(address, 8) {
            self.spilled.insert(address);
        }
    }

    /// Removes the frames of an earlier run.
    pub(in crate::checked) fn drop_frames(&mut self) {
        while self.frames > 0 {
            self.pop_frame();
        }
    }

    /// True if bytes are in the stack of a run.
    pub(in crate::checked) fn is_on_stack(&self, address: u64, len: u64) -> bool {
        let region = self.locate(address, len).map(|index| &self.regions[index]);
        region.is_some_and(|region| matches!(region.bytes, Bytes::Frame(_)))
    }

    /// The addresses of the last frame.
    pub(in crate::checked) fn last_frame(&self) -> Range<u64> {
        let end = self.end_of_frame(self.frames.saturating_sub(1));
        end - FRAME_BYTES as u64..end
    }

    /// Adds a frame filled with a byte; returns the address of its end.
    pub(in crate::checked) fn push_frame(&mut self, fill: u8) -> u64 {
        let mut bytes = self
            .spare
            .pop()
            .unwrap_or_else(|| vec![0; FRAME_BYTES].into());
        bytes.fill(fill);
        let end = self.end_of_frame(self.frames);
        let start = end - FRAME_BYTES as u64;
        self.mark_spilled(start, FRAME_BYTES as u64, false);
        self.regions.push(Region {
            start,
            bytes: Bytes::Frame(bytes),
        });
        self.watch.push(self.frames);
        self.frames += 1;
        end
    }

    /// The index of the region that was added last.
    pub(in crate::checked) fn newest(&self) -> usize {
        self.regions.len().saturating_sub(1)
    }

    /// Removes the last frame.
    pub(in crate::checked) fn pop_frame(&mut self) {
        if let Some(Region {
            bytes: Bytes::Frame(bytes),
            ..
        }) = self.regions.pop()
        {
            self.spare.push(bytes);
            self.frames -= 1;
            self.watch.pop(self.frames);
        }
    }

    /// The region that holds all of these bytes. Frames, which are accessed most, come last
    /// and are searched first.
    pub(super) fn locate(&self, address: u64, len: u64) -> Option<usize> {
        self.regions.iter().rposition(|region| {
            let offset = address.wrapping_sub(region.start);
            offset <= region.len() && len <= region.len() - offset
        })
    }

    /// Classifies an invalid access; one within a region is misaligned.
    #[cold]
    pub(in crate::checked) fn fault(&self, address: u64, size: u64, access: Access) -> BadAccess {
        if let Some(fault) = self.maps.fault(address, size, access) {
            return fault;
        }
        let last = address.saturating_add(size.saturating_sub(1));
        let nearest = (0..self.regions.len())
            .min_by_key(|index| self.regions[*index].distance(address, last));
        let region = nearest.map(|index| &self.regions[index]);
        let overlap = region.map_or(0, |region| region.overlap(address, last));
        let error = if address.checked_add(size.saturating_sub(1)).is_none() {
            AccessError::Wraps
        } else if overlap == 0 {
            AccessError::Outside
        } else if overlap < size {
            AccessError::Crosses(overlap)
        } else if access != Access::Read
            && region.is_some_and(|region| matches!(region.bytes, Bytes::ReadOnly(_)))
        {
            AccessError::ReadOnly
        } else {
            AccessError::Misaligned
        };
        BadAccess {
            address,
            size,
            access,
            error,
            nearest: nearest.map(|index| self.info(index)),
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
