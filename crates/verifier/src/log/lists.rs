//! Sets of registers and slots as the kernel lists them.

use std::fmt;

/// Registers by bit, as `r1,r3`.
pub struct RegList(pub u32);

impl fmt::Display for RegList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bits(f, self.0.into(), |f, bit| write!(f, "r{bit}"))
    }
}

/// Stack slots by bit, as `-8,-24`.
pub struct SlotList(pub u64);

impl fmt::Display for SlotList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bits(f, self.0, |f, bit| write!(f, "-{}", (bit + 1) * 8))
    }
}

fn write_bits(
    f: &mut fmt::Formatter<'_>,
    mut bits: u64,
    write: impl Fn(&mut fmt::Formatter<'_>, u32) -> fmt::Result,
) -> fmt::Result {
    let mut comma = "";
    while bits != 0 {
        f.write_str(comma)?;
        write(f, bits.trailing_zeros())?;
        bits &= bits - 1;
        comma = ",";
    }
    Ok(())
}
