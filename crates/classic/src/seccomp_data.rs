//! What a seccomp filter sees of a system call.

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
    /// The four-byte word at `offset`, as a little-endian machine lays the
    /// structure out (every architecture that Beebox names system calls for is
    /// one); `None` when `offset` is unaligned or beyond.
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

    /// The structure as it lies in the memory of a little-endian machine.
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
}
