//! Inputs of the plain interpreter: packets under either semantics, and seccomp data.

use isa::classic::{AD_OFFSET, Extension};
use packet::Packet;
use spec::Random;
use spec::context::SECCOMP_DATA_SIZE;

use crate::SeccompData;
use crate::ancillary::{self, Ancillary};

/// Input of a run. `None` ends the run with 0.
pub(super) trait Input {
    /// True if shifts by more than 31 give 0, false if counts are masked.
    const WIDE_SHIFTS_GIVE_ZERO: bool;
    fn len(&self) -> u32;
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;
    fn indirect<const N: usize>(&self, x: u32, k: u32) -> Option<[u8; N]>;
    /// Bytes at a negative offset.
    fn header<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;
    fn ancillary(&mut self, code: u32, a: u32, x: u32) -> Ancillary;
}

pub(super) struct Captured<'a> {
    pub(super) data: &'a [u8],
    pub(super) wire_len: u32,
}

impl Input for Captured<'_> {
    const WIDE_SHIFTS_GIVE_ZERO: bool = true;

    #[inline(always)]
    fn len(&self) -> u32 {
        self.wire_len
    }

    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        read(self.data, u64::from(offset))
    }

    #[inline(always)]
    fn indirect<const N: usize>(&self, x: u32, k: u32) -> Option<[u8; N]> {
        read(self.data, u64::from(x) + u64::from(k))
    }

    fn header<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.bytes(offset)
    }

    fn ancillary(&mut self, _: u32, a: u32, _: u32) -> Ancillary {
        Ancillary::Value(a)
    }
}

pub(super) struct InKernel<'a, 'p> {
    pub(super) data: &'a [u8],
    pub(super) packet: &'a Packet<'p>,
    pub(super) random: &'a mut dyn Random,
}

impl Input for InKernel<'_, '_> {
    const WIDE_SHIFTS_GIVE_ZERO: bool = false;

    #[inline(always)]
    fn len(&self) -> u32 {
        self.data.len() as u32
    }

    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        read(self.data, u64::from(offset))
    }

    #[inline(always)]
    fn indirect<const N: usize>(&self, x: u32, k: u32) -> Option<[u8; N]> {
        let offset = x.wrapping_add(k);
        if (offset as i32) < 0 {
            self.header(offset)
        } else {
            self.bytes(offset)
        }
    }

    #[cold]
    fn header<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.packet
            .bytes_at_offset(offset as i32, N)?
            .try_into()
            .ok()
    }

    #[inline(never)]
    fn ancillary(&mut self, code: u32, a: u32, x: u32) -> Ancillary {
        match Extension::from_offset(AD_OFFSET + code) {
            Some(extension) => ancillary::load(extension, a, x, self.packet, self.random),
            // Only ancillary loads are prepared as such.
            None => Ancillary::Value(a),
        }
    }
}

/// Seccomp data. Its words are in host byte order; they are swapped here, because the loop
/// converts from network order.
pub(super) struct Call<'a>(pub(super) &'a SeccompData);

impl Input for Call<'_> {
    const WIDE_SHIFTS_GIVE_ZERO: bool = false;

    fn len(&self) -> u32 {
        SECCOMP_DATA_SIZE as u32
    }

    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.0.word(offset)?.to_be_bytes()[..].try_into().ok()
    }

    fn indirect<const N: usize>(&self, _: u32, _: u32) -> Option<[u8; N]> {
        None
    }

    fn header<const N: usize>(&self, _: u32) -> Option<[u8; N]> {
        None
    }

    fn ancillary(&mut self, _: u32, a: u32, _: u32) -> Ancillary {
        Ancillary::Value(a)
    }
}

#[inline(always)]
fn read<const N: usize>(data: &[u8], offset: u64) -> Option<[u8; N]> {
    let start = offset as usize;
    data.get(start..start + N)?.try_into().ok()
}
