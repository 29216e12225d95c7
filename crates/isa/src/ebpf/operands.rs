//! Registers read and written, memory accesses and control flow of an instruction.
//!
//! The sets follow from the encoding: a call reads all five argument registers; a callee's
//! prototype may narrow that.
//!
//! They are computed from the instruction without its row; a test compares them with the
//! columns of the table.

use super::insn::{AtomicOp, Callee, Insn, Operand, Reg, Size};
use super::properties::Halves;
use super::row::Effect;
use AtomicOp::{Add, And, CmpXchg, Or, Xchg, Xor};
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

    /// Union of both sets.
    pub const fn union(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }

    /// Difference of both sets.
    pub const fn without(self, other: RegSet) -> RegSet {
        RegSet(self.0 & !other.0)
    }

    /// True if the register is in the set.
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 & 1 << reg.number() != 0
    }

    /// True if no register is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as bits: bit `n` for register `n`.
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

/// The registers of a row: fixed ones, and those in the destination and source fields.
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

    /// Union of both.
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
    /// Offset that is added to the register.
    pub off: i16,
    /// Size in bytes.
    pub size: Size,
    /// True if the bytes are read.
    pub reads: bool,
    /// True if the bytes are written.
    pub writes: bool,
}

/// Control flow after an instruction; distances are slots from the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// To the next slot.
    Next,
    /// Past the second slot of a 64-bit immediate.
    SkipOne,
    /// To the next slot, or to this distance from it.
    Branch(i32),
    /// To this distance from the next slot.
    Goto(i32),
    /// To an address in a register.
    GotoReg(Reg),
    /// A call that returns to the next slot; of a local function at this distance from it.
    Call(Option<i32>),
    /// A return from the function.
    Exit,
    /// None: not an instruction by itself.
    Nowhere,
}

impl Operand {
    const fn registers(self) -> RegSet {
        match self {
            Operand::Reg(reg) => RegSet::of(reg),
            Operand::Imm(_) => RegSet::EMPTY,
        }
    }
}

impl Insn {
    /// Registers that the instruction reads.
    pub const fn reads(self) -> RegSet {
        match self {
            Insn::Alu { op, dst, src, .. } => match op.reads_of_dst() {
                Halves::Neither => src.registers(),
                Halves::Low | Halves::Each | Halves::Both => RegSet::of(dst).union(src.registers()),
            },
            Insn::Jump { dst, src, .. } => RegSet::of(dst).union(src.registers()),
            Insn::Store { base, src, .. } => RegSet::of(base).union(src.registers()),
            Insn::Neg { dst, .. } | Insn::Endian { dst, .. } | Insn::GotoReg { dst } => {
                RegSet::of(dst)
            }
            Insn::MovSx { src, .. } | Insn::Cast { src, .. } => RegSet::of(src),
            Insn::Load { base, .. } | Insn::LoadAcquire { base, .. } => RegSet::of(base),
            Insn::StoreRelease { base, src, .. } => RegSet::of(base).union(RegSet::of(src)),
            Insn::Atomic { op, base, src, .. } => {
                let operands = RegSet::of(base).union(RegSet::of(src));
                match op {
                    CmpXchg => operands.union(RegSet::of(Reg::R0)),
                    Add { .. } | Or { .. } | And { .. } | Xor { .. } | Xchg => operands,
                }
            }
            Insn::PacketAbs { .. } => RegSet::of(Reg::R6),
            Insn::PacketInd { src, .. } => RegSet::of(src).union(RegSet::of(Reg::R6)),
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. } | Callee::Local(_)) => {
                RegSet::ARGUMENTS
            }
            Insn::CallReg { dst } => RegSet::of(dst).union(RegSet::ARGUMENTS),
            Insn::Exit => RegSet::of(Reg::R0),
            Insn::LoadImm64 { .. }
            | Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::MayGoto { .. }
            | Insn::Invalid { .. } => RegSet::EMPTY,
        }
    }

    /// Registers that the instruction writes or clobbers (`insn_def_regno`).
    #[doc(alias = "insn_def_regno")]
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
            Insn::Atomic { op, src, .. } => {
                if op.fetches_into_src() {
                    RegSet::of(src)
                } else if op.fetches_into_r0() {
                    RegSet::of(Reg::R0)
                } else {
                    RegSet::EMPTY
                }
            }
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. } | Callee::Local(_))
            | Insn::CallReg { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. } => RegSet::ARGUMENTS.union(RegSet::of(Reg::R0)),
            Insn::Store { .. }
            | Insn::StoreRelease { .. }
            | Insn::Imm64High
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => RegSet::EMPTY,
        }
    }

    /// The memory access through a register; `None` for packet loads.
    pub const fn access(self) -> Option<Access> {
        let (base, off, size, reads, writes) = match self {
            Insn::Load {
                base, off, size, ..
            }
            | Insn::LoadAcquire {
                base, off, size, ..
            } => (base, off, size, true, false),
            Insn::Store {
                base, off, size, ..
            }
            | Insn::StoreRelease {
                base, off, size, ..
            } => (base, off, size, false, true),
            Insn::Atomic {
                base, off, size, ..
            } => (base, off, size, true, true),
            Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::LoadImm64 { .. }
            | Insn::Imm64High
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Call(_)
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => return None,
        };
        Some(Access {
            base,
            off,
            size,
            reads,
            writes,
        })
    }

    /// The operand that is written to memory, alone or combined with what is there.
    pub const fn stored(self) -> Option<Operand> {
        match self {
            Insn::Store { src, .. } => Some(src),
            Insn::StoreRelease { src, .. } | Insn::Atomic { src, .. } => Some(Operand::Reg(src)),
            Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::LoadImm64 { .. }
            | Insn::Imm64High
            | Insn::Load { .. }
            | Insn::LoadAcquire { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Call(_)
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => None,
        }
    }

    /// Side effect; `None` for slots that are no instruction by themselves.
    #[inline]
    pub const fn effect(&self) -> Option<Effect> {
        Some(match *self {
            Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. } => Effect::Compute,
            Insn::LoadImm64 { .. } => Effect::Wide,
            Insn::Load { .. } | Insn::LoadAcquire { .. } => Effect::Load,
            Insn::Store { .. } | Insn::StoreRelease { .. } => Effect::Store,
            Insn::Atomic { .. } => Effect::Atomic,
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => Effect::Packet,
            Insn::Jump { .. } | Insn::MayGoto { .. } => Effect::Branch,
            Insn::Goto { .. } => Effect::Goto,
            Insn::GotoLong { .. } => Effect::GotoLong,
            Insn::GotoReg { .. } => Effect::GotoReg,
            Insn::Call(_) | Insn::CallReg { .. } => Effect::Call,
            Insn::Exit => Effect::Exit,
            Insn::Imm64High | Insn::Invalid { .. } => return None,
        })
    }

    /// Control flow after the instruction.
    #[inline]
    pub const fn flow(&self) -> Flow {
        match *self {
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
            Insn::Call(Callee::Local(distance)) => Flow::Call(Some(distance)),
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) | Insn::CallReg { .. } => {
                Flow::Call(None)
            }
            Insn::Exit => Flow::Exit,
            Insn::Imm64High | Insn::Invalid { .. } => Flow::Nowhere,
        }
    }

    /// The jump or local call with another distance from the next slot; a `goto` becomes a
    /// `gotol` where it has to. `None` if the distance has no encoding, or for other
    /// instructions.
    pub fn with_distance(self, distance: i32) -> Option<Insn> {
        let short = i16::try_from(distance).ok();
        Some(match self {
            Insn::Goto { .. } => match short {
                Some(off) => Insn::Goto { off },
                None => Insn::GotoLong { off: distance },
            },
            Insn::GotoLong { .. } => Insn::GotoLong { off: distance },
            Insn::MayGoto { .. } => Insn::MayGoto { off: short? },
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                ..
            } => Insn::Jump {
                cond,
                width,
                dst,
                src,
                off: short?,
            },
            Insn::Call(Callee::Local(_)) => Insn::Call(Callee::Local(distance)),
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. })
            | Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::LoadImm64 { .. }
            | Insn::Imm64High
            | Insn::Load { .. }
            | Insn::Store { .. }
            | Insn::Atomic { .. }
            | Insn::LoadAcquire { .. }
            | Insn::StoreRelease { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::GotoReg { .. }
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => return None,
        })
    }
}

impl AtomicOp {
    /// True if the source register receives the old value (`is_atomic_fetch_insn`).
    #[doc(alias = "is_atomic_fetch_insn")]
    pub const fn fetches_into_src(self) -> bool {
        match self {
            Add { fetch } | Or { fetch } | And { fetch } | Xor { fetch } => fetch,
            Xchg => true,
            CmpXchg => false,
        }
    }

    /// The register that receives the old value, `src` being the source register.
    pub const fn receiver(self, src: Reg) -> Option<Reg> {
        match self {
            CmpXchg => Some(Reg::R0),
            _ if self.fetches_into_src() => Some(src),
            Add { .. } | Or { .. } | And { .. } | Xor { .. } | Xchg => None,
        }
    }

    /// True if `r0` receives the old value (`is_cmpxchg_insn`).
    #[doc(alias = "is_cmpxchg_insn")]
    pub const fn fetches_into_r0(self) -> bool {
        match self {
            CmpXchg => true,
            Add { .. } | Or { .. } | And { .. } | Xor { .. } | Xchg => false,
        }
    }
}
