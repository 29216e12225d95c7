//! Provenance of values: dependence on the addresses of memory and stack.
//!
//! Engines place memory and stack at addresses of their own, so a program has one right
//! result only if the result does not depend on addresses. Running it at several addresses
//! does not prove that; tracking the provenance of each value does.

use isa::ebpf::{AluOp, Cond, Width};

/// Provenance of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// A number that does not depend on addresses.
    #[default]
    Number,
    /// An address: as far from the beginning of that region wherever it lies.
    Address(Region),
    /// A number that depends on an address in an untracked way.
    Mixed,
}

/// A contiguous region: the memory, or the stack of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region(pub(super) u32);

impl Region {
    /// The memory that the program is handed.
    pub(super) const MEMORY: Region = Region(0);
    /// The context of a program that has one.
    pub(super) const CONTEXT: Region = Region(1);
    /// The stack of the first frame; later frames have later ones.
    pub(super) const STACK: Region = Region(2);
}

impl Origin {
    pub(super) fn is_number(self) -> bool {
        self == Origin::Number
    }

    /// Provenance after an operation on parts of an address.
    pub(super) fn changed(self) -> Origin {
        match self {
            Origin::Number => Origin::Number,
            _ => Origin::Mixed,
        }
    }

    /// Provenance after an operation on two values.
    pub(super) fn of_alu(op: AluOp, width: Width, a: Origin, b: Origin) -> Origin {
        use Origin::{Address, Number};
        match (op, width, a, b) {
            (AluOp::Mov, Width::W64, _, b) => b,
            (AluOp::Mov, Width::W32, _, b) => b.changed(),
            (_, _, Number, Number) => Number,
            (AluOp::Add, Width::W64, Address(region), Number)
            | (AluOp::Add, Width::W64, Number, Address(region))
            | (AluOp::Sub, Width::W64, Address(region), Number) => Address(region),
            (AluOp::Sub, Width::W64, Address(a), Address(b)) if a == b => Number,
            _ => Origin::Mixed,
        }
    }

    /// True if the result of a comparison does not depend on addresses, provided that all
    /// addresses are near their regions.
    pub(super) fn decides(cond: Cond, width: Width, a: Origin, b: Origin) -> bool {
        match (a, b) {
            (Origin::Number, Origin::Number) => true,
            (Origin::Address(a), Origin::Address(b)) => {
                a == b && width == Width::W64 && cond != Cond::Set
            }
            _ => false,
        }
    }
}

/// Provenance of a byte in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ByteOrigin {
    #[default]
    Number,
    /// The byte of that number, from the lowest, of an address.
    Address(Region, u8),
    Mixed,
}

impl ByteOrigin {
    /// Of byte `number`, from the lowest, of a value of which `bytes` are stored.
    pub(super) fn stored(origin: Origin, number: usize, bytes: usize) -> ByteOrigin {
        match origin {
            Origin::Number => ByteOrigin::Number,
            Origin::Address(region) if bytes == 8 => ByteOrigin::Address(region, number as u8),
            _ => ByteOrigin::Mixed,
        }
    }

    /// Of the value that these bytes are.
    pub(super) fn loaded(bytes: &[ByteOrigin]) -> Origin {
        if bytes.iter().all(|byte| *byte == ByteOrigin::Number) {
            return Origin::Number;
        }
        let whole = |region| {
            let mut numbered = bytes.iter().zip(0..);
            bytes.len() == 8
                && numbered.all(|(byte, number)| *byte == ByteOrigin::Address(region, number))
        };
        match bytes[0] {
            ByteOrigin::Address(region, _) if whole(region) => Origin::Address(region),
            _ => Origin::Mixed,
        }
    }
}
