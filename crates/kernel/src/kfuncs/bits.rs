//! Bit operations, which no release of Linux has (`spec::bits`).

use spec::bits::BitOp;
use vm::MemoryPort;

use crate::call::{Call, Return};

/// The operation of that index: its arguments are a value and a count.
pub(super) fn operation<M: MemoryPort, const OP: usize>(
    Call([value, count, ..], _, _): Call<M>,
) -> Return<M> {
    Ok(BitOp::ALL[OP].eval(value, count))
}
