//! The stack of a verified program, as helpers find it that read any address.
//!
//! A frame of native code holds the stack of a function of the program beside what belongs to
//! the process: saved registers, return addresses, frames of helpers. Engines (native code by
//! itself, the threaded interpreter by [`FrameLayout`]) of programs
//! that call such helpers link a [`FrameRecord`] of each frame with a stack into a list, whose
//! head is in the run context, and unlink it where the function returns. The frames of one
//! run form a list as long as its calls are nested, those of programs that it entered by tail
//! calls among them.

use std::ptr;

use crate::FRAME_BYTES;

/// Bytes of the stack that are described by one bit of [`FrameRecord::address_slots`].
const SLOT: u64 = 8;

/// Record of a stack frame, which engines write right below the stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    /// Address of the record of the caller's frame; 0 behind the last one.
    pub next: u64,
    /// Bytes of the stack, which begins behind the record.
    pub bytes: u64,
    /// Slots of 8 bytes that hold an address of the process in some run, from the highest
    /// address down: bit 0 for the slot that ends at the frame pointer.
    pub address_slots: u64,
}

/// The stack of a function of a verified program, as the threaded interpreter enters it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    /// Bytes below the frame pointer, a multiple of 8.
    bytes: u32,
    address_slots: u64,
    /// Helpers may look for it.
    is_linked: bool,
}

impl FrameLayout {
    /// Most bytes below a frame pointer that entering a frame writes.
    pub const ROOM: usize = FRAME_BYTES + size_of::<FrameRecord>();

    /// The frame of a function that accesses so many bytes, at most [`FRAME_BYTES`].
    pub fn new(bytes: u32, address_slots: u64, is_linked: bool) -> FrameLayout {
        let bytes = bytes.min(FRAME_BYTES as u32).next_multiple_of(SLOT as u32);
        FrameLayout {
            bytes,
            address_slots,
            is_linked: is_linked && bytes > 0,
        }
    }

    /// True if the frame has a record in the list.
    pub fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// Sets the stack to zero, as the verifier lets privileged programs read stack that they did
    /// not write, and links its record.
    ///
    /// # Safety
    /// [`FrameLayout::ROOM`] bytes below the frame pointer, which is a multiple of 8, are valid
    /// for writes, until the frame is not in the list any more.
    #[inline(always)]
    pub unsafe fn enter(&self, frame_pointer: u64, frames: &mut StackFrames) {
        let start = frame_pointer - u64::from(self.bytes);
        let stack = ptr::with_exposed_provenance_mut::<u64>(start as usize);
        // SAFETY: there are so many bytes, as the caller asserts, and those of the record.
        unsafe {
            stack.write_bytes(0, (self.bytes / SLOT as u32) as usize);
            if self.is_linked {
                let record = start - size_of::<FrameRecord>() as u64;
                ptr::with_exposed_provenance_mut::<FrameRecord>(record as usize).write(
                    FrameRecord {
                        next: frames.0,
                        bytes: self.bytes.into(),
                        address_slots: self.address_slots,
                    },
                );
                frames.0 = record;
            }
        }
    }
}

/// The stack frames of a run: the address of the innermost [`FrameRecord`].
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrames(u64);

impl StackFrames {
    /// No frame.
    pub const NONE: StackFrames = StackFrames(0);

    /// Removes the innermost frame.
    ///
    /// # Safety
    /// There is one, and its record exists.
    pub unsafe fn unlink(&mut self) {
        let record = ptr::with_exposed_provenance::<FrameRecord>(self.0 as usize);
        // SAFETY: passed on to the caller.
        self.0 = unsafe { (*record).next };
    }

    /// The frame with the bytes from `address` on: its record, and the offset of the first byte.
    ///
    /// # Safety
    /// The records of the list exist.
    unsafe fn frame_with(self, address: u64, len: usize) -> Option<(FrameRecord, u64)> {
        let mut next = self.0;
        while next != 0 {
            let place = ptr::with_exposed_provenance::<FrameRecord>(next as usize);
            // SAFETY: the record exists, as the caller asserts.
            let record = unsafe { place.read() };
            let offset = address.wrapping_sub(next + size_of::<FrameRecord>() as u64);
            let is_in = offset
                .checked_add(len as u64)
                .is_some_and(|end| end <= record.bytes);
            if is_in {
                return Some((record, offset));
            }
            next = record.next;
        }
        None
    }

    /// Reads bytes of a frame by `read`; false if they are not all in one. Bytes of slots that
    /// hold addresses of the process are zero.
    ///
    /// # Safety
    /// As for [`StackFrames::frame_with`].
    pub(crate) unsafe fn probe(
        self,
        address: u64,
        into: &mut [u8],
        read: impl FnOnce(&mut [u8]),
    ) -> bool {
        // SAFETY: passed on to the caller.
        let Some((record, offset)) = (unsafe { self.frame_with(address, into.len()) }) else {
            return false;
        };
        read(into);
        for (at, byte) in (offset..).zip(into) {
            let slot = (record.bytes - at - 1) / SLOT;
            if record.address_slots >> slot & 1 != 0 {
                *byte = 0;
            }
        }
        true
    }
}
