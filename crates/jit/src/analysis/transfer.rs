//! The transfer function of an instruction for liveness: which register halves it reads and
//! writes, and which reads depend on how much of the result is live.

use isa::ebpf::facts;
use isa::ebpf::{AluOp, ByteOrder, Callee, Insn, Operand, Reg, Size, Width};
use spec::calls::GET_SMP_PROCESSOR_ID;

/// A set of register halves: bit `n` for the low half of register `n`, bit `16 + n` for
/// its upper half. Live sets always contain [`Halves::EFFECT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Halves(u32);

impl Halves {
    pub(crate) const NONE: Halves = Halves(0);
    /// Effects other than register writes, which are always live.
    pub(super) const EFFECT: Halves = Halves(1 << 31);
    pub(super) const ALL: Halves = Halves(0x07ff_07ff).union(Halves::EFFECT);
    const UPPER: Halves = Halves(0x07ff_0000);

    /// The low half.
    pub(crate) const fn low(reg: Reg) -> Halves {
        Halves(1 << reg.number())
    }

    /// The upper half.
    pub(super) const fn upper(reg: Reg) -> Halves {
        Halves(0x1_0000 << reg.number())
    }

    /// Both halves.
    pub(crate) const fn both(reg: Reg) -> Halves {
        Halves(0x1_0001 << reg.number())
    }

    pub(crate) const fn union(self, other: Halves) -> Halves {
        Halves(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Halves) -> Halves {
        Halves(self.0 & !other.0)
    }

    pub(crate) const fn overlaps(self, other: Halves) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the set has any half of the register.
    pub(crate) const fn has(self, reg: Reg) -> bool {
        self.overlaps(Halves::both(reg))
    }

    /// True if the set has the upper half of the register.
    pub(crate) const fn has_upper(self, reg: Reg) -> bool {
        self.overlaps(Halves::upper(reg))
    }

    /// The registers of which the set has a half: bit `n` for register `n`.
    pub(crate) const fn regs(self) -> u16 {
        (self.0 | self.0 >> 16) as u16 & 0x7ff
    }

    pub(super) const fn operand(operand: Operand, width: Width) -> Halves {
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

/// What is read: in the low word in any case, in the high word upper halves if the
/// result's upper half is live. They are kept in one, because the pass over all
/// instructions is mostly made of this.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(super) struct Reads(u64);

impl Reads {
    const fn of(always: Halves, follows: Halves) -> Reads {
        Reads(always.0 as u64 | (follows.0 as u64) << 32)
    }

    /// Both halves of the register in both words.
    const fn all(reg: Reg) -> Reads {
        Reads(0x1_0001_0001_0001 << reg.number())
    }

    const fn among(self, mask: Reads) -> Reads {
        Reads(self.0 & mask.0)
    }

    pub(super) const fn union(self, other: Reads) -> Reads {
        Reads(self.0 | other.0)
    }

    const fn always(self) -> Halves {
        Halves(self.0 as u32)
    }

    const fn follows(self) -> Halves {
        Halves((self.0 >> 32) as u32)
    }

    /// All that may be read.
    pub(super) const fn halves(self) -> Halves {
        self.always().union(self.follows())
    }
}

/// The transfer function of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transfer {
    /// Contains [`Halves::EFFECT`] if `writes` does.
    reads: Reads,
    /// Contains [`Halves::EFFECT`] if the instruction is never dead.
    writes: Halves,
}

impl Transfer {
    /// An instruction without effects other than register writes.
    pub(crate) const fn pure(reads: Halves, writes: Halves) -> Transfer {
        Transfer {
            reads: Reads::of(reads, Halves::NONE),
            writes,
        }
    }

    /// The same instruction with effects: [`Halves::EFFECT`] or none.
    #[inline(always)]
    pub(super) const fn and_effects(self, effects: Halves) -> Transfer {
        Transfer {
            reads: self.reads.union(Reads::of(effects, Halves::NONE)),
            writes: self.writes.union(effects),
        }
    }

    /// What it reads.
    #[inline(always)]
    pub(super) const fn read(self) -> Halves {
        self.reads.halves()
    }

    /// The same, told apart.
    #[inline(always)]
    pub(super) const fn reads(self) -> Reads {
        self.reads
    }

    /// What it writes.
    #[inline(always)]
    pub(super) const fn written(self) -> Halves {
        self.writes.without(Halves::EFFECT)
    }

    /// The same, with [`Halves::EFFECT`] if it does more.
    #[inline(always)]
    pub(super) const fn effects(self) -> Halves {
        self.writes
    }

    /// True if it reads any half of the register.
    pub(crate) fn uses(self, reg: Reg) -> bool {
        self.read().has(reg)
    }

    /// True if it writes the register.
    pub(crate) fn writes(self, reg: Reg) -> bool {
        self.writes.has(reg)
    }

    #[inline(always)]
    pub(super) fn of_alu_imm(op: AluOp, width: Width, dst: Reg) -> Transfer {
        let dst = Reads::all(dst);
        Transfer {
            reads: dst.among(ALU[op as usize][width as usize].dst),
            writes: dst.always(),
        }
    }

    #[inline(always)]
    pub(super) fn of_alu_reg(op: AluOp, width: Width, dst: Reg, src: Reg) -> Transfer {
        let masks = &ALU[op as usize][width as usize];
        let (dst, src) = (Reads::all(dst), Reads::all(src));
        Transfer {
            reads: dst.among(masks.dst).union(src.among(masks.src)),
            writes: dst.always(),
        }
    }

    #[inline(always)]
    pub(super) fn of_load(dst: Reg, base: Reg) -> Transfer {
        Transfer::pure(Halves::both(base), Halves::both(dst))
    }

    #[inline(always)]
    pub(super) fn of_store(size: Size, base: Reg, src: Operand) -> Transfer {
        let reads = Halves::both(base).union(Halves::stored(size, src));
        Transfer::effect(reads, Halves::NONE)
    }

    #[inline(always)]
    pub(super) fn of_endian(order: ByteOrder, size: Size, dst: Reg) -> Transfer {
        match (order, size) {
            (ByteOrder::Little, Size::DW) => Transfer::in_place(dst),
            (ByteOrder::Big | ByteOrder::Swap, Size::DW) => {
                Transfer::pure(Halves::both(dst), Halves::both(dst))
            }
            (_, Size::B | Size::H | Size::W) => Transfer::pure(Halves::low(dst), Halves::both(dst)),
        }
    }

    /// A jump that is always taken.
    pub(super) const GOTO: Transfer = Transfer::effect(Halves::NONE, Halves::NONE);

    #[inline(always)]
    pub(super) fn of_branch(width: Width, dst: Reg, src: Operand) -> Transfer {
        let dst = Halves::of(dst, width);
        Transfer::effect(dst.union(Halves::operand(src, width)), Halves::NONE)
    }

    /// An instruction with effects.
    const fn effect(reads: Halves, writes: Halves) -> Transfer {
        Transfer::pure(reads.union(Halves::EFFECT), writes.union(Halves::EFFECT))
    }

    /// A 64-bit operation in place, the low half of whose result depends on the low
    /// half of the register alone.
    const fn in_place(reg: Reg) -> Transfer {
        Transfer {
            reads: Reads::of(Halves::low(reg), Halves::upper(reg)),
            writes: Halves::both(reg),
        }
    }

    /// The transfer function of an instruction; `result` is live at the end of functions.
    pub(super) fn of(insn: Insn, result: Halves) -> Transfer {
        let compute = |dst: Reg, reads: Halves| Transfer::pure(reads, Halves::both(dst));
        let effect = Transfer::effect;
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => match src {
                Operand::Imm(_) => Transfer::of_alu_imm(op, width, dst),
                Operand::Reg(src) => Transfer::of_alu_reg(op, width, dst, src),
            },
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
            // Nothing is called for it.
            Insn::Call(Callee::Helper(GET_SMP_PROCESSOR_ID)) => compute(Reg::R0, Halves::NONE),
            Insn::Call(_) | Insn::CallReg { .. } => effect(ARGUMENTS, ARGUMENTS.union(RESULT)),
            Insn::Exit => effect(result, Halves::NONE),
            Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Invalid { .. } => effect(Halves::NONE, Halves::NONE),
        }
    }

    /// The live-in set for a live-out set; `None` if the instruction is dead.
    #[inline(always)]
    pub(super) const fn propagate(self, after: Halves) -> Option<Halves> {
        let made = after.0 & self.writes.0;
        if made == 0 {
            return None;
        }
        let follows = match made & Halves::UPPER.0 {
            0 => 0,
            _ => self.reads.follows().0,
        };
        Some(Halves((after.0 ^ made) | self.reads.always().0 | follows))
    }
}

/// The halves that an arithmetic operation reads of its operands, as masks over all
/// registers.
#[derive(Clone, Copy)]
struct Masks {
    dst: Reads,
    src: Reads,
}

impl Masks {
    const fn of(op: AluOp, width: Width) -> Masks {
        const LOW: Halves = Halves(0x0000_07ff);
        const NONE: Reads = Reads::of(Halves::NONE, Halves::NONE);
        const LOWER: Reads = Reads::of(LOW, Halves::NONE);
        const BOTH: Reads = Reads::of(LOW.union(Halves::UPPER), Halves::NONE);
        /// The low half, and the upper one if that is live.
        const EACH: Reads = Reads::of(LOW, Halves::UPPER);
        const fn mask(width: Width, halves: facts::Halves) -> Reads {
            match (halves, width) {
                (facts::Halves::Neither, _) => NONE,
                (facts::Halves::Low, _) => LOWER,
                (facts::Halves::Each | facts::Halves::Both, Width::W32) => LOWER,
                (facts::Halves::Each, Width::W64) => EACH,
                (facts::Halves::Both, Width::W64) => BOTH,
            }
        }
        let dst = mask(width, op.reads_of_dst());
        let src = mask(width, op.reads_of_src());
        Masks { dst, src }
    }
}

/// By operation and width.
const ALU: [[Masks; 2]; AluOp::ALL.len()] = {
    let mut table = [[Masks::of(AluOp::Mov, Width::W32); 2]; AluOp::ALL.len()];
    let mut index = 0;
    while index < AluOp::ALL.len() {
        let op = AluOp::ALL[index];
        table[op as usize][Width::W32 as usize] = Masks::of(op, Width::W32);
        table[op as usize][Width::W64 as usize] = Masks::of(op, Width::W64);
        index += 1;
    }
    table
};

const RESULT: Halves = Halves::both(Reg::R0);
/// `r1` to `r5`.
const ARGUMENTS: Halves = Halves(0x3e_003e);
