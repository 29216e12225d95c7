//! The stack of a verified program in native code, as helpers find it that read any address.
//!
//! A frame of native code holds the stack of a function of the program beside what belongs to
//! the process: saved registers, return addresses, frames of helpers. Native code of programs
//! that call such helpers links a [`FrameRecord`] of each frame with a stack into a list, whose
//! head is in the run context, and unlinks it where the function returns. The frames of one
//! run form a list as long as its calls are nested, those of programs that it entered by tail
//! calls among them.

use std::ptr;

/// Bytes of the stack that are described by one bit of [`FrameRecord::address_slots`].
const SLOT: u64 = 8;

/// Record of a stack frame, which native code writes right below the stack.
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

/// The stack frames of a run: the address of the innermost [`FrameRecord`].
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrames(u64);

impl StackFrames {
    /// No frame.
    pub const NONE: StackFrames = StackFrames(0);

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
