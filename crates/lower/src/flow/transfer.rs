//! Definitions and uses of an instruction, its transfer function for liveness: which register
//! halves it reads and writes, and which reads depend on how much of the result is live.

use isa::ebpf::properties;
use isa::ebpf::{AluOp, ByteOrder, Insn, Operand, Reg, Size, Width};
use spec::bits::BitOp;

use crate::LoweredCall;

/// A set of register halves: bit `n` for the low half of register `n`, bit `16 + n` for
/// its upper half. Live sets always contain [`Halves::EFFECT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halves(u32);

impl Halves {
    /// The empty set.
    pub const NONE: Halves = Halves(0);
    /// Effects other than register writes, which are always live.
    pub const EFFECT: Halves = Halves(1 << 31);
    /// Both halves of all registers, and [`Halves::EFFECT`].
    pub(super) const ALL: Halves = Halves(0x07ff_07ff).union(Halves::EFFECT);
    const UPPER: Halves = Halves(0x07ff_0000);

    /// The low half of a register.
    #[inline]
    pub const fn low(reg: Reg) -> Halves {
        Halves(1 << reg.number())
    }

    /// The upper half of a register.
    #[inline]
    pub(crate) const fn upper(reg: Reg) -> Halves {
        Halves(0x1_0000 << reg.number())
    }

    /// Both halves of a register.
    #[inline]
    pub const fn both(reg: Reg) -> Halves {
        Halves(0x1_0001 << reg.number())
    }

    /// Union of both sets.
    #[inline]
    pub const fn union(self, other: Halves) -> Halves {
        Halves(self.0 | other.0)
    }

    /// Difference of both sets.
    #[inline]
    pub const fn without(self, other: Halves) -> Halves {
        Halves(self.0 & !other.0)
    }

    /// True if both sets have a half in common.
    #[inline]
    pub const fn overlaps(self, other: Halves) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the set contains either half of the register.
    #[inline]
    pub const fn has(self, reg: Reg) -> bool {
        self.overlaps(Halves::both(reg))
    }

    /// True if the set contains the upper half of the register.
    #[inline]
    pub const fn has_upper(self, reg: Reg) -> bool {
        self.overlaps(Halves::upper(reg))
    }

    /// The registers of which the set has a half: bit `n` for register `n`.
    #[inline]
    pub const fn regs(self) -> u16 {
        (self.0 | self.0 >> 16) as u16 & 0x7ff
    }

    const fn operand(operand: Operand, width: Width) -> Halves {
        match operand {
            Operand::Imm(_) => Halves::NONE,
            Operand::Reg(reg) => Halves::of(reg, width),
        }
    }

    /// The halves of a register that an operation of this width reads.
    const fn of(reg: Reg, width: Width) -> Halves {
        let halves = match width {
            Width::W32 => 0x1,
            Width::W64 => 0x1_0001,
        };
        Halves(halves << reg.number())
    }

    /// The halves that a store of this size reads of its operand.
    const fn stored(size: Size, operand: Operand) -> Halves {
        let width = match size {
            Size::DW => Width::W64,
            Size::B | Size::H | Size::W => Width::W32,
        };
        Halves::operand(operand, width)
    }
}

/// The register halves that an instruction reads.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    always: Halves,
    /// Read only if the upper half of the result is live.
    for_upper: Halves,
}

impl Reads {
    const fn of(always: Halves, for_upper: Halves) -> Reads {
        Reads { always, for_upper }
    }

    /// The halves of a register that an operand of an arithmetic operation reads.
    const fn operand(reg: Reg, halves: properties::Halves, width: Width) -> Reads {
        match (halves, width) {
            (properties::Halves::Neither, _) => Reads::of(Halves::NONE, Halves::NONE),
            (properties::Halves::Low, _)
            | (properties::Halves::Each | properties::Halves::Both, Width::W32) => {
                Reads::of(Halves::low(reg), Halves::NONE)
            }
            (properties::Halves::Each, Width::W64) => {
                Reads::of(Halves::low(reg), Halves::upper(reg))
            }
            (properties::Halves::Both, Width::W64) => Reads::of(Halves::both(reg), Halves::NONE),
        }
    }

    const fn union(self, other: Reads) -> Reads {
        Reads {
            always: self.always.union(other.always),
            for_upper: self.for_upper.union(other.for_upper),
        }
    }

    /// All halves that may be read.
    const fn halves(self) -> Halves {
        self.always.union(self.for_upper)
    }
}

/// The transfer function of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transfer {
    /// Contains [`Halves::EFFECT`] if `writes` does.
    reads: Reads,
    /// Contains [`Halves::EFFECT`] if the instruction is never dead.
    writes: Halves,
}

impl Transfer {
    /// An instruction without effects other than register writes.
    #[inline]
    pub const fn pure(reads: Halves, writes: Halves) -> Transfer {
        Transfer {
            reads: Reads::of(reads, Halves::NONE),
            writes,
        }
    }

    /// The same instruction with an effect, so that it is never dead.
    #[inline]
    pub(super) const fn with_effect(self) -> Transfer {
        Transfer {
            reads: self.reads.union(Reads::of(Halves::EFFECT, Halves::NONE)),
            writes: self.writes.union(Halves::EFFECT),
        }
    }

    /// The register halves that the instruction may read.
    #[inline]
    pub const fn read(self) -> Halves {
        self.reads.halves()
    }

    /// The register halves that the instruction writes.
    #[inline]
    pub const fn written(self) -> Halves {
        self.writes.without(Halves::EFFECT)
    }

    /// The register halves that the instruction writes, with [`Halves::EFFECT`] if it has
    /// other effects.
    #[inline]
    pub const fn effects(self) -> Halves {
        self.writes
    }

    /// True if the instruction reads either half of the register.
    #[inline]
    pub fn uses(self, reg: Reg) -> bool {
        self.read().has(reg)
    }

    /// True if the instruction writes the register.
    #[inline]
    pub fn writes(self, reg: Reg) -> bool {
        self.writes.has(reg)
    }

    #[inline]
    fn of_alu(op: AluOp, width: Width, dst: Reg, src: Operand) -> Transfer {
        let mut reads = Reads::operand(dst, op.reads_of_dst(), width);
        if let Operand::Reg(src) = src {
            reads = reads.union(Reads::operand(src, op.reads_of_src(), width));
        }
        Transfer {
            reads,
            writes: Halves::both(dst),
        }
    }

    fn of_load(dst: Reg, base: Reg) -> Transfer {
        Transfer::pure(Halves::both(base), Halves::both(dst))
    }

    fn of_store(size: Size, base: Reg, src: Operand) -> Transfer {
        let reads = Halves::both(base).union(Halves::stored(size, src));
        Transfer::effect(reads, Halves::NONE)
    }

    fn of_endian(order: ByteOrder, size: Size, dst: Reg) -> Transfer {
        match (order, size) {
            (ByteOrder::Little, Size::DW) => Transfer::in_place(dst),
            (ByteOrder::Big | ByteOrder::Swap, Size::DW) => {
                Transfer::pure(Halves::both(dst), Halves::both(dst))
            }
            (ByteOrder::Little | ByteOrder::Big | ByteOrder::Swap, Size::B | Size::H | Size::W) => {
                Transfer::pure(Halves::low(dst), Halves::both(dst))
            }
        }
    }

    fn of_branch(width: Width, dst: Reg, src: Operand) -> Transfer {
        let dst = Halves::of(dst, width);
        Transfer::effect(dst.union(Halves::operand(src, width)), Halves::NONE)
    }

    /// An instruction with effects.
    const fn effect(reads: Halves, writes: Halves) -> Transfer {
        Transfer::pure(reads.union(Halves::EFFECT), writes.union(Halves::EFFECT))
    }

    /// A 64-bit operation in place whose low result half depends on the low half of the
    /// register only.
    const fn in_place(reg: Reg) -> Transfer {
        Transfer {
            reads: Reads::of(Halves::low(reg), Halves::upper(reg)),
            writes: Halves::both(reg),
        }
    }

    /// The transfer function of an instruction; `result` is live at the end of functions.
    #[inline]
    pub(super) fn of(insn: &Insn, result: Halves) -> Transfer {
        let compute = |dst: Reg, reads: Halves| Transfer::pure(reads, Halves::both(dst));
        let effect = Transfer::effect;
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => Transfer::of_alu(op, width, dst, src),
            Insn::Load { dst, base, .. } => Transfer::of_load(dst, base),
            Insn::Jump {
                width, dst, src, ..
            } => Transfer::of_branch(width, dst, src),
            Insn::Store {
                size, base, src, ..
            } => Transfer::of_store(size, base, src),
            Insn::Neg { width, dst } => match width {
                Width::W32 => compute(dst, Halves::low(dst)),
                Width::W64 => Transfer::in_place(dst),
            },
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => {
                compute(dst, Halves::low(src))
            }
            Insn::Endian { order, size, dst } => Transfer::of_endian(order, size, dst),
            Insn::LoadImm64 { dst, .. } => compute(dst, Halves::NONE),
            Insn::LoadAcquire { dst, base, .. } => effect(Halves::both(base), Halves::both(dst)),
            Insn::StoreRelease {
                size, base, src, ..
            } => Transfer::of_store(size, base, Operand::Reg(src)),
            Insn::Atomic {
                op,
                size,
                base,
                src,
                ..
            } => {
                let mut reads = Halves::both(base).union(Halves::stored(size, Operand::Reg(src)));
                let mut writes = Halves::NONE;
                if op.fetches_into_src() {
                    writes = Halves::both(src);
                }
                if op.fetches_into_r0() {
                    reads = reads.union(Halves::both(Reg::R0));
                    writes = Halves::both(Reg::R0);
                }
                effect(reads, writes)
            }
            Insn::PacketAbs { .. } => effect(Halves::NONE, Halves::both(Reg::R0)),
            Insn::PacketInd { src, .. } => effect(Halves::low(src), Halves::both(Reg::R0)),
            Insn::Call(callee) => match LoweredCall::of(callee) {
                Some(call) => Transfer::of_call(call),
                None => Transfer::CALL,
            },
            Insn::CallReg { .. } => Transfer::CALL,
            Insn::Exit => effect(result, Halves::NONE),
            Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Invalid { .. } => effect(Halves::NONE, Halves::NONE),
        }
    }

    /// A call with the arguments of helpers.
    const CALL: Transfer = Transfer::effect(ARGUMENTS, ARGUMENTS.union(RESULT));

    fn of_call(call: LoweredCall) -> Transfer {
        match call {
            // Compiled to a load, not to a call.
            LoweredCall::ProcessorId => Transfer::pure(Halves::NONE, RESULT),
            LoweredCall::TailCall => Transfer::effect(TAIL_ARGUMENTS, TAIL_ARGUMENTS),
            // The table and the index are known.
            LoweredCall::TailSlot(_) => Transfer::effect(Halves::both(Reg::R1), TAIL_ARGUMENTS),
            // Lowering writes it out; it is a call where it could not.
            LoweredCall::Bits(BitOp::Bitrev) => Transfer::CALL,
            LoweredCall::Bits(op) => Transfer::pure(read_by(op), RESULT),
            // The map is known.
            LoweredCall::HashLookup(_) => {
                Transfer::effect(Halves::both(Reg::R2), ARGUMENTS.union(RESULT))
            }
            LoweredCall::Count(_) => Transfer::effect(Halves::NONE, Halves::NONE),
            LoweredCall::Local(_)
            | LoweredCall::Helper(_)
            | LoweredCall::Kfunc(_)
            | LoweredCall::Host(_)
            | LoweredCall::MapFunction(_)
            | LoweredCall::BeginCallbacks
            | LoweredCall::NextCallback
            | LoweredCall::PacketLoad => Transfer::CALL,
        }
    }

    /// The live-in set for a live-out set; `None` if the instruction is dead.
    #[inline]
    pub const fn propagate(self, live_out: Halves) -> Option<Halves> {
        let made = live_out.0 & self.writes.0;
        if made == 0 {
            return None;
        }
        let is_upper_made = made & Halves::UPPER.0 != 0;
        let follows = if is_upper_made {
            self.reads.for_upper.0
        } else {
            0
        };
        Some(Halves((live_out.0 ^ made) | self.reads.always.0 | follows))
    }
}

const RESULT: Halves = Halves::both(Reg::R0);
/// `r1` to `r5`.
const ARGUMENTS: Halves = Halves(0x3e_003e);
/// `r1` to `r3`.
const TAIL_ARGUMENTS: Halves = Halves(0xe_000e);

/// Registers that a bit operation reads: the value, and `r2` where it holds a count or is used
/// beside the result.
const fn read_by(op: BitOp) -> Halves {
    match op {
        BitOp::Rol | BitOp::Ror | BitOp::Popcnt => {
            Halves::both(Reg::R1).union(Halves::low(Reg::R2))
        }
        BitOp::Ffs | BitOp::Ctz | BitOp::Clz | BitOp::Fls | BitOp::Bitrev => Halves::both(Reg::R1),
    }
}
