//! The input of seccomp filters.

use spec::context::SECCOMP_DATA_SIZE;

/// `struct seccomp_data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeccompData {
    /// Number of the system call.
    pub nr: i32,
    /// Architecture whose convention the call uses (an `AUDIT_ARCH_` value).
    pub arch: u32,
    /// Address of the instruction that makes the call.
    pub instruction_pointer: u64,
    /// The arguments, as the registers hold them.
    pub args: [u64; 6],
}

impl SeccompData {
    /// The four-byte word at `offset` in the layout of a little-endian machine (all
    /// supported architectures are); `None` if `offset` is unaligned or outside.
    #[inline]
    pub const fn word(&self, offset: u32) -> Option<u32> {
        if !offset.is_multiple_of(4) {
            return None;
        }
        let wide = match offset / 8 {
            0 => (self.nr as u32 as u64) | (self.arch as u64) << 32,
            1 => self.instruction_pointer,
            n @ 2..=7 => self.args[n as usize - 2],
            _ => return None,
        };
        Some((wide >> (offset % 8 * 8)) as u32)
    }

    /// The structure in the layout of a little-endian machine.
    #[inline]
    pub fn to_bytes(&self) -> [u8; SECCOMP_DATA_SIZE] {
        let mut bytes = [0; SECCOMP_DATA_SIZE];
        bytes[..4].copy_from_slice(&self.nr.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.arch.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.instruction_pointer.to_le_bytes());
        for (chunk, arg) in bytes[16..].chunks_exact_mut(8).zip(self.args) {
            chunk.copy_from_slice(&arg.to_le_bytes());
        }
        bytes
    }

    /// The data whose words lie on a little-endian machine where those of `self` lie on a
    /// big-endian one: the halves of 64-bit fields change places.
    pub const fn with_halves_exchanged(mut self) -> SeccompData {
        self.instruction_pointer = self.instruction_pointer.rotate_left(32);
        let mut at = 0;
        while at < self.args.len() {
            self.args[at] = self.args[at].rotate_left(32);
            at += 1;
        }
        self
    }
}
