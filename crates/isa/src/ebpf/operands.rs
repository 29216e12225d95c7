//! Registers read and written, memory accesses and control flow of an instruction: what a
//! liveness pass, a control-flow graph or a register allocator needs without knowing the
//! operation.
//!
//! The sets are those that the encoding implies: a call reads all five argument registers
//! here; the callee's prototype narrows that.
//!
//! The table says the same of every row, and a test compares both; the functions here decide
//! by the instruction alone, without finding its row.

use super::insn::{AluOp, AtomicOp, Insn, Operand, Reg, Size};
use std::fmt;

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RegSet(u16);

impl RegSet {
    /// No register.
    pub const EMPTY: RegSet = RegSet(0);
    /// The arguments of calls, `r1` to `r5`.
    pub const ARGUMENTS: RegSet = RegSet(0b11_1110);

    /// The set of one register.
    pub const fn of(reg: Reg) -> RegSet {
        RegSet(1 << reg.number())
    }

    /// Both sets together.
    pub const fn union(self, other: RegSet) -> RegSet {
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
    pub const fn union(self, other: RegRoles) -> RegRoles {
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
    pub const fn reads(self) -> RegSet {
        let dst = match self {
            Insn::Alu { op: AluOp::Mov, .. } => RegSet::EMPTY,
            Insn::Alu { dst, .. }
            | Insn::Neg { dst, .. }
            | Insn::Endian { dst, .. }
            | Insn::Store { base: dst, .. }
            | Insn::Atomic { base: dst, .. }
            | Insn::StoreRelease { base: dst, .. }
            | Insn::Jump { dst, .. }
            | Insn::GotoReg { dst }
            | Insn::CallReg { dst } => RegSet::of(dst),
            _ => RegSet::EMPTY,
        };
        let src = match self {
            Insn::Alu { src, .. } | Insn::Store { src, .. } | Insn::Jump { src, .. } => match src {
                Operand::Reg(src) => RegSet::of(src),
                Operand::Imm(_) => RegSet::EMPTY,
            },
            Insn::MovSx { src, .. }
            | Insn::Cast { src, .. }
            | Insn::Load { base: src, .. }
            | Insn::LoadAcquire { base: src, .. }
            | Insn::StoreRelease { src, .. }
            | Insn::Atomic { src, .. }
            | Insn::PacketInd { src, .. } => RegSet::of(src),
            _ => RegSet::EMPTY,
        };
        let implied = match self {
            Insn::Call(_) | Insn::CallReg { .. } => RegSet::ARGUMENTS,
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => RegSet::of(Reg::R6),
            Insn::Atomic {
                op: AtomicOp::CmpXchg,
                ..
            }
            | Insn::Exit => RegSet::of(Reg::R0),
            _ => RegSet::EMPTY,
        };
        dst.union(src).union(implied)
    }

    /// Registers whose values it replaces or destroys.
    pub const fn writes(self) -> RegSet {
        match self {
            Insn::Alu { dst, .. }
            | Insn::Neg { dst, .. }
            | Insn::MovSx { dst, .. }
            | Insn::Endian { dst, .. }
            | Insn::Cast { dst, .. }
            | Insn::LoadImm64 { dst, .. }
            | Insn::Load { dst, .. }
            | Insn::LoadAcquire { dst, .. } => RegSet::of(dst),
            Insn::Atomic { op, src, .. } => match op {
                AtomicOp::CmpXchg => RegSet::of(Reg::R0),
                _ if op.fetches_into_src() => RegSet::of(src),
                _ => RegSet::EMPTY,
            },
            Insn::Call(_)
            | Insn::CallReg { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. } => RegSet::ARGUMENTS.union(RegSet::of(Reg::R0)),
            _ => RegSet::EMPTY,
        }
    }

    /// The memory it reads or writes through a register; packet loads are not
    /// among them.
    pub const fn access(self) -> Option<Access> {
        let (base, off, size) = match self {
            Insn::Load {
                base, off, size, ..
            }
            | Insn::LoadAcquire {
                base, off, size, ..
            }
            | Insn::Store {
                base, off, size, ..
            }
            | Insn::StoreRelease {
                base, off, size, ..
            }
            | Insn::Atomic {
                base, off, size, ..
            } => (base, off, size),
            _ => return None,
        };
        Some(Access {
            base,
            off,
            size,
            reads: !matches!(self, Insn::Store { .. } | Insn::StoreRelease { .. }),
            writes: !matches!(self, Insn::Load { .. } | Insn::LoadAcquire { .. }),
        })
    }

    /// Where control goes after it.
    pub const fn flow(self) -> Flow {
        match self {
            Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::Load { .. }
            | Insn::Store { .. }
            | Insn::Atomic { .. }
            | Insn::LoadAcquire { .. }
            | Insn::StoreRelease { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. } => Flow::Next,
            Insn::LoadImm64 { .. } => Flow::SkipOne,
            Insn::Jump { off, .. } | Insn::MayGoto { off } => Flow::Branch(off as i32),
            Insn::Goto { off } => Flow::Goto(off as i32),
            Insn::GotoLong { off } => Flow::Goto(off),
            Insn::GotoReg { dst } => Flow::GotoReg(dst),
            Insn::Call(_) | Insn::CallReg { .. } => Flow::Call,
            Insn::Exit => Flow::Exit,
            Insn::Imm64High | Insn::Invalid { .. } => Flow::Nowhere,
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
