//! The registers of one frame, in chunks of four, which states share until one of them
//! writes (copy on write).
//!
//! Between two checkpoints few registers change; a checkpoint then costs the chunks of
//! these, not all eleven registers.

use std::ops::{Index, IndexMut};
use std::rc::Rc;

use isa::ebpf::Reg;

use super::reg::RegState;

/// Registers of a chunk.
const CHUNK: usize = 4;

type Chunk = [RegState; CHUNK];

/// `r0` to `r10` of one frame. Writing to a register copies its chunk first if another
/// state shares it; chunks that two states share are equal at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    chunks: [Rc<Chunk>; Reg::COUNT.div_ceil(CHUNK)],
}

impl Registers {
    /// Registers that nothing was written to.
    pub fn not_init() -> Registers {
        let chunk = Rc::new([RegState::NOT_INIT; CHUNK]);
        Registers {
            chunks: std::array::from_fn(|_| Rc::clone(&chunk)),
        }
    }

    /// All registers in order.
    pub fn iter(&self) -> impl Iterator<Item = &RegState> {
        let registers = self.chunks.iter().flat_map(|chunk| chunk.iter());
        registers.take(Reg::COUNT)
    }
}

impl Index<usize> for Registers {
    type Output = RegState;

    #[inline]
    fn index(&self, reg: usize) -> &RegState {
        &self.chunks[reg / CHUNK][reg % CHUNK]
    }
}

impl IndexMut<usize> for Registers {
    #[inline]
    fn index_mut(&mut self, reg: usize) -> &mut RegState {
        &mut Rc::make_mut(&mut self.chunks[reg / CHUNK])[reg % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::Registers;
    use crate::state::RegState;
    use isa::ebpf::Reg;
    use std::rc::Rc;

    #[test]
    fn a_write_copies_one_chunk() {
        let old = Registers::not_init();
        let mut new = old.clone();
        new[6] = RegState::constant(7);
        assert_eq!(
            (old[6], new[6]),
            (RegState::NOT_INIT, RegState::constant(7))
        );
        assert_eq!(
            (old.iter().count(), new.iter().count()),
            (Reg::COUNT, Reg::COUNT)
        );
        assert_eq!(new.iter().position(|reg| reg.is_scalar()), Some(6));
        let pairs = old.chunks.iter().zip(&new.chunks);
        let shared: Vec<bool> = pairs.map(|(old, new)| Rc::ptr_eq(old, new)).collect();
        assert_eq!(shared, [true, false, true]);
    }
}
