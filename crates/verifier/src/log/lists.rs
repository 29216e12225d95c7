//! Sets of slots as the kernel lists them.

use std::fmt;

/// Stack slots by bit, as `-8,-24`.
pub(crate) struct SlotList(pub u64);

impl fmt::Display for SlotList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for bit in (0..64).filter(|bit| self.0 >> bit & 1 != 0) {
            write!(f, "{comma}-{}", (bit + 1) * 8)?;
            comma = ",";
        }
        Ok(())
    }
}
