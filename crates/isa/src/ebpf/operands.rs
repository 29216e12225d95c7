//! Which registers an instruction reads and writes, which memory it touches,
//! and where control goes next: what a liveness pass, a control-flow graph or
//! a register allocator asks of an instruction without knowing its operation.
//!
//! Registers come from the table's rows. They are the most that the encoding
//! says: a call reads all five argument registers here, and whoever knows the
//! callee's prototype narrows that.

use super::insn::{AtomicOp, Insn, Reg, Size};
use super::row::Effect;
use std::fmt;

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RegSet(u16);

impl RegSet {
    /// No register.
    pub const EMPTY: RegSet = RegSet(0);

    /// The set of one register.
    pub const fn of(reg: Reg) -> RegSet {
        RegSet(1 << reg.number())
    }

    /// Both sets together.
    pub const fn and(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// This set without the registers of the other.
    pub const fn without(self, other: RegSet) -> RegSet {
        RegSet(self.0 & !other.0)
    }

    /// Whether the register is in the set.
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 & 1 << reg.number() != 0
    }

    /// Whether no register is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Bit `n` stands for register `n`.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The registers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        (0..Reg::COUNT as u8)
            .filter(move |n| self.0 & 1 << n != 0)
            .filter_map(Reg::new)
    }
}

impl fmt::Debug for RegSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The registers a row names: fixed ones, and whichever stand in the
/// destination and source fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegRoles(u16);

impl RegRoles {
    /// No register.
    pub const EMPTY: RegRoles = RegRoles(0);
    /// The register in the destination field.
    pub const DST: RegRoles = RegRoles(1 << 14);
    /// The register in the source field.
    pub const SRC: RegRoles = RegRoles(1 << 15);

    /// A register that the operation implies.
    pub const fn of(reg: Reg) -> RegRoles {
        RegRoles(1 << reg.number())
    }

    /// Both together.
    pub const fn and(self, other: RegRoles) -> RegRoles {
        RegRoles(self.0 | other.0)
    }

    /// The registers, for a slot with these register fields.
    pub const fn resolve(self, dst: u8, src: u8) -> RegSet {
        let fixed = self.0 & 0x3fff;
        let dst = if self.0 & RegRoles::DST.0 != 0 {
            1 << (dst & 15)
        } else {
            0
        };
        let src = if self.0 & RegRoles::SRC.0 != 0 {
            1 << (src & 15)
        } else {
            0
        };
        RegSet(fixed | dst | src)
    }
}

/// A memory access by address register and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Register that holds the address.
    pub base: Reg,
    /// Added to it.
    pub off: i16,
    /// How many bytes.
    pub size: Size,
    /// Whether the bytes are read.
    pub reads: bool,
    /// Whether the bytes are written.
    pub writes: bool,
}

/// Where control goes after an instruction; distances count slots after the
/// next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// To the next slot.
    Next,
    /// Past the second slot of a 64-bit immediate.
    SkipOne,
    /// To the next slot or this far after it.
    Branch(i32),
    /// This far after the next slot.
    Goto(i32),
    /// Where a register says.
    GotoReg(Reg),
    /// Into a function and back to the next slot.
    Call,
    /// Out of the function.
    Exit,
    /// Nowhere: not an instruction by itself.
    Nowhere,
}

impl Insn {
    /// Registers whose values it uses.
    pub fn reads(self) -> RegSet {
        self.anatomy().map_or(RegSet::EMPTY, |(row, raw, _)| {
            row.reads.resolve(raw.dst(), raw.src())
        })
    }

    /// Registers whose values it replaces or destroys.
    pub fn writes(self) -> RegSet {
        self.anatomy().map_or(RegSet::EMPTY, |(row, raw, _)| {
            row.writes.resolve(raw.dst(), raw.src())
        })
    }

    /// The memory it reads or writes through a register; packet loads are not
    /// among them.
    pub fn access(self) -> Option<Access> {
        let (row, raw, _) = self.anatomy()?;
        let (base, reads, writes) = match row.effect {
            Effect::Load => (raw.src(), true, false),
            Effect::Store => (raw.dst(), false, true),
            Effect::Atomic => (raw.dst(), true, true),
            _ => return None,
        };
        Some(Access {
            base: Reg::new(base)?,
            off: raw.off,
            size: Size::from_code(row.code),
            reads,
            writes,
        })
    }

    /// Where control goes after it.
    pub fn flow(self) -> Flow {
        let Some((row, raw, _)) = self.anatomy() else {
            return Flow::Nowhere;
        };
        match row.effect {
            Effect::Compute | Effect::Load | Effect::Store | Effect::Atomic | Effect::Packet => {
                Flow::Next
            }
            Effect::Wide => Flow::SkipOne,
            Effect::Branch => Flow::Branch(raw.off.into()),
            Effect::Goto => Flow::Goto(raw.off.into()),
            Effect::GotoLong => Flow::Goto(raw.imm),
            Effect::GotoReg => Reg::new(raw.dst()).map_or(Flow::Nowhere, Flow::GotoReg),
            Effect::Call => Flow::Call,
            Effect::Exit => Flow::Exit,
        }
    }
}

impl AtomicOp {
    /// Whether the source register receives the old value.
    pub const fn fetches_into_src(self) -> bool {
        match self {
            AtomicOp::Add { fetch }
            | AtomicOp::Or { fetch }
            | AtomicOp::And { fetch }
            | AtomicOp::Xor { fetch } => fetch,
            AtomicOp::Xchg => true,
            AtomicOp::CmpXchg => false,
        }
    }

    /// Whether `r0` receives the old value.
    pub const fn fetches_into_r0(self) -> bool {
        matches!(self, AtomicOp::CmpXchg)
    }
}
