//! Bit operations, which no release of Linux has (`spec::bits`).

use spec::bits::BitOp;
use vm::{MemoryPort, RunContext};

/// The operation of that index: its arguments are a value and a count.
pub(super) fn operation<M: MemoryPort, const OP: usize>(
    [value, count, ..]: [u64; 5],
    _: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(BitOp::ALL[OP].eval(value, count))
}
