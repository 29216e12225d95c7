//! Where values come from: whether they would be others if memory and stack lay
//! elsewhere.
//!
//! Engines put memory and stack where they like, so a program has one right answer
//! only if it never tells where they are. No number of places tried out shows that:
//! a comparison may come out otherwise in a place that nobody tried. What is known
//! of each value does.

use isa::ebpf::{AluOp, Cond, Width};

/// What a value depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// The same number wherever regions lie.
    #[default]
    Number,
    /// An address: as far from the beginning of that region wherever it lies.
    Address(Region),
    /// It changes with the place of a region in a way that is not followed.
    Mixed,
}

/// What lies in one piece: the memory, or one activation's stack.
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

    /// What an operation makes of it that looks at more than the address as a whole.
    pub(super) fn changed(self) -> Origin {
        match self {
            Origin::Number => Origin::Number,
            _ => Origin::Mixed,
        }
    }

    /// What an operation makes of two.
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

    /// Whether a comparison comes out alike wherever regions lie, given that no
    /// address in it is far from its region.
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

/// What a byte in memory is of.
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
