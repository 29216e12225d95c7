//! What the code generator wants to know of a program before it writes a byte:
//! where jumps lead, which values are still wanted after each instruction, what
//! each function uses.
//!
//! Liveness is kept for the halves of registers apart, because most 64-bit
//! operations whose upper half no one reads can be done on 32 bits, and because
//! an instruction whose result no one reads at all is left out. One pass forward
//! notes what each instruction reads and writes ([`Transfer`]); passes backward
//! over each function carry the wanted values from their uses to where they are
//! made, again and again until loops agree.
//!
//! Cost: linear. Two or three passes backward settle what compilers make; a
//! function that takes more than [`MOST_PASSES`] gets the safe answer that
//! everything is wanted where its loops begin.

use isa::ebpf::{AluOp, ByteOrder, Callee, Insn, Operand, Reg, Size, Width};
use lower::chains::Chains;
use lower::jumps::{Arrivals, jump_target};
use lower::{Evidence, Function, Lowered};

use crate::idiom::{self, Rewrite};

/// Passes backward after which a function gets the safe answer.
const MOST_PASSES: usize = 8;

/// Halves of registers: bit `n` for the low half of register `n`, bit `16 + n`
/// for its upper half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Halves(u32);

impl Halves {
    pub(crate) const NONE: Halves = Halves(0);
    const ALL: Halves = Halves(0x07ff_07ff);

    /// The low half.
    pub(crate) const fn low(reg: Reg) -> Halves {
        Halves(1 << reg.number())
    }

    /// Both halves.
    pub(crate) const fn both(reg: Reg) -> Halves {
        Halves(0x1_0001 << reg.number())
    }

    pub(crate) const fn and(self, other: Halves) -> Halves {
        Halves(self.0 | other.0)
    }

    const fn without(self, other: Halves) -> Halves {
        Halves(self.0 & !other.0)
    }

    const fn overlaps(self, other: Halves) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether any part of the register is wanted.
    pub(crate) const fn has(self, reg: Reg) -> bool {
        self.overlaps(Halves::both(reg))
    }

    /// Whether the upper half of the register is wanted.
    pub(crate) const fn has_upper(self, reg: Reg) -> bool {
        self.0 & 0x1_0000 << reg.number() != 0
    }

    fn regs(self) -> impl Iterator<Item = Reg> {
        let mut rest = (self.0 | self.0 >> 16) & 0x7ff;
        std::iter::from_fn(move || {
            let reg = Reg::new(rest.trailing_zeros() as u8)?;
            rest &= rest - 1;
            Some(reg)
        })
    }

    const fn operand(operand: Operand, width: Width) -> Halves {
        match (operand, width) {
            (Operand::Imm(_), _) => Halves::NONE,
            (Operand::Reg(reg), Width::W32) => Halves::low(reg),
            (Operand::Reg(reg), Width::W64) => Halves::both(reg),
        }
    }
}

/// What an instruction does to wanted values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transfer {
    /// Read in any case.
    reads: Halves,
    /// Read as far as the result is wanted: its upper half only for the result's
    /// upper half.
    follows: Halves,
    writes: Halves,
    /// Left out where its result is not wanted.
    pure: bool,
}

impl Transfer {
    /// An instruction that only computes.
    pub(crate) const fn pure(reads: Halves, writes: Halves) -> Transfer {
        Transfer {
            reads,
            follows: Halves::NONE,
            writes,
            pure: true,
        }
    }

    /// The registers it reads.
    pub(crate) fn read(self) -> impl Iterator<Item = Reg> {
        self.reads.and(self.follows).regs()
    }

    /// The registers it writes.
    pub(crate) fn written(self) -> impl Iterator<Item = Reg> {
        self.writes.regs()
    }

    fn of(insn: Insn, result: Halves) -> Transfer {
        let compute = |dst: Reg, reads: Halves| Transfer::pure(reads, Halves::both(dst));
        let follow = |dst: Reg, follows: Halves, reads: Halves| Transfer {
            follows,
            ..compute(dst, reads)
        };
        let effect = |reads: Halves, writes: Halves| Transfer {
            reads,
            writes,
            ..Transfer::default()
        };
        let stored = |size: Size, src: Operand| {
            let width = match size {
                Size::DW => Width::W64,
                _ => Width::W32,
            };
            Halves::operand(src, width)
        };
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let source = Halves::operand(src, width);
                match (op, width) {
                    (AluOp::Mov, Width::W32) => compute(dst, source),
                    (AluOp::Mov, Width::W64) => follow(dst, source, Halves::NONE),
                    (_, Width::W32) => compute(dst, Halves::low(dst).and(source)),
                    (
                        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::And | AluOp::Or | AluOp::Xor,
                        Width::W64,
                    ) => follow(dst, Halves::both(dst).and(source), Halves::NONE),
                    (AluOp::Lsh, Width::W64) => {
                        let count = Halves::operand(src, Width::W32);
                        follow(dst, Halves::both(dst), count)
                    }
                    (AluOp::Rsh | AluOp::Arsh, Width::W64) => {
                        let count = Halves::operand(src, Width::W32);
                        compute(dst, Halves::both(dst).and(count))
                    }
                    (_, Width::W64) => compute(dst, Halves::both(dst).and(source)),
                }
            }
            Insn::Neg { width, dst } => match width {
                Width::W32 => compute(dst, Halves::low(dst)),
                Width::W64 => follow(dst, Halves::both(dst), Halves::NONE),
            },
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => {
                compute(dst, Halves::low(src))
            }
            Insn::Endian { order, size, dst } => match (order, size) {
                (ByteOrder::Little, Size::DW) => follow(dst, Halves::both(dst), Halves::NONE),
                (_, Size::DW) => compute(dst, Halves::both(dst)),
                _ => compute(dst, Halves::low(dst)),
            },
            Insn::LoadImm64 { dst, .. } => compute(dst, Halves::NONE),
            Insn::Load { dst, base, .. } => compute(dst, Halves::both(base)),
            Insn::LoadAcquire { dst, base, .. } => effect(Halves::both(base), Halves::both(dst)),
            Insn::Store {
                size, base, src, ..
            } => effect(Halves::both(base).and(stored(size, src)), Halves::NONE),
            Insn::StoreRelease {
                size, base, src, ..
            } => {
                let source = stored(size, Operand::Reg(src));
                effect(Halves::both(base).and(source), Halves::NONE)
            }
            Insn::Atomic {
                op,
                size,
                base,
                src,
                ..
            } => {
                let mut reads = Halves::both(base).and(stored(size, Operand::Reg(src)));
                let mut writes = Halves::NONE;
                if op.fetches_into_src() {
                    writes = Halves::both(src);
                }
                if op.fetches_into_r0() {
                    reads = reads.and(Halves::both(Reg::R0));
                    writes = Halves::both(Reg::R0);
                }
                effect(reads, writes)
            }
            Insn::PacketAbs { .. } => effect(Halves::NONE, Halves::both(Reg::R0)),
            Insn::PacketInd { src, .. } => effect(Halves::low(src), Halves::both(Reg::R0)),
            Insn::Jump {
                width, dst, src, ..
            } => {
                let dst = Halves::operand(Operand::Reg(dst), width);
                effect(dst.and(Halves::operand(src, width)), Halves::NONE)
            }
            Insn::Call(_) | Insn::CallReg { .. } => effect(ARGUMENTS, ARGUMENTS.and(RESULT)),
            Insn::Exit => effect(result, Halves::NONE),
            Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Invalid { .. } => Transfer::default(),
        }
    }

    /// What is wanted before, given what is wanted after; and whether the
    /// instruction is.
    #[inline(always)]
    fn apply(self, after: Halves) -> (Halves, bool) {
        let wanted = !self.pure || after.overlaps(self.writes);
        if !wanted {
            return (after, false);
        }
        let upper = after.0 & self.writes.0 >> 16 << 16 != 0;
        let follows = if upper {
            self.follows.0
        } else {
            self.follows.0 & 0xffff
        };
        let before = after.without(self.writes).0 | self.reads.0 | follows;
        (Halves(before), true)
    }
}

const RESULT: Halves = Halves::both(Reg::R0);
/// `r1` to `r5`.
const ARGUMENTS: Halves = Halves(0x3e_003e);

/// What a function uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bit `n`: register `n` is read or written.
    pub(crate) regs: u16,
    pub(crate) calls_helpers: bool,
    pub(crate) calls_functions: bool,
    /// Packet loads.
    pub(crate) packet: bool,
    pub(crate) may_goto: bool,
    /// Jumps backward.
    pub(crate) loops: bool,
    /// Divisions by a register, and atomics that need a loop of their own: code
    /// that wants more scratch registers than the others.
    pub(crate) complex: bool,
    /// The lowest offset from `r10` that is accessed, where it stays there.
    pub(crate) lowest_stack: i16,
    /// How often `r10` is the base of an access.
    pub(crate) stack_accesses: u32,
    /// `r10` is copied, so that any of its frame may be accessed.
    pub(crate) stack_escapes: bool,
}

impl Usage {
    pub(crate) fn has(&self, reg: Reg) -> bool {
        self.regs & 1 << reg.number() != 0
    }

    fn note(&mut self, insn: Insn, transfer: Transfer) {
        let halves = transfer.reads.and(transfer.follows).and(transfer.writes).0;
        self.regs |= (halves | halves >> 16) as u16 & 0x7ff;
        match insn {
            Insn::Call(Callee::Local(_)) => self.calls_functions = true,
            Insn::Call(_) => self.calls_helpers = true,
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => self.packet = true,
            Insn::MayGoto { .. } => self.may_goto = true,
            Insn::Alu {
                op: AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod,
                ..
            } => self.complex = true,
            Insn::Atomic { op, .. } if op.fetches_into_src() => self.complex = true,
            Insn::Load { base, off, .. } | Insn::LoadAcquire { base, off, .. } => {
                self.note_access(base, off);
            }
            Insn::Store { base, off, src, .. } => {
                self.note_access(base, off);
                self.stack_escapes |= src == Operand::Reg(Reg::R10);
            }
            Insn::StoreRelease { base, off, src, .. } => {
                self.note_access(base, off);
                self.stack_escapes |= src == Reg::R10;
            }
            Insn::Alu {
                src: Operand::Reg(Reg::R10),
                ..
            }
            | Insn::MovSx { src: Reg::R10, .. }
            | Insn::Cast { src: Reg::R10, .. } => self.stack_escapes = true,
            Insn::Jump { dst, src, .. } => {
                self.stack_escapes |= dst == Reg::R10 || src == Operand::Reg(Reg::R10);
            }
            _ => {}
        }
        if let Insn::Atomic { base, off, src, .. } = insn {
            self.note_access(base, off);
            self.stack_escapes |= src == Reg::R10;
        }
        self.stack_escapes |= matches!(insn, Insn::PacketInd { src: Reg::R10, .. });
    }

    fn note_access(&mut self, base: Reg, off: i16) {
        if base == Reg::R10 {
            self.stack_accesses += 1;
            self.lowest_stack = self.lowest_stack.min(off);
        }
    }
}

/// A jump: its slot and where it leads.
#[derive(Clone, Copy, Debug)]
struct Edge {
    slot: u32,
    target: u32,
    /// Whether control can also fall through.
    conditional: bool,
}

/// What is known of one slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fact {
    /// What is wanted after it.
    pub(crate) after: Halves,
    /// What is wanted before it.
    pub(crate) before: Halves,
    /// A jump leads here, other than one that is a selection.
    pub(crate) is_target: bool,
    /// A branch over a single move: the move is done or not, without a jump.
    pub(crate) is_selection: bool,
    /// A jump backward leads here.
    pub(crate) is_loop: bool,
    /// Its result is not wanted.
    pub(crate) is_dead: bool,
    /// It is done in another way: the position in [`Analysis::rewrites`] and 1.
    pub(crate) rewrite: u32,
}

/// See the module's text.
pub(crate) struct Analysis {
    pub(crate) facts: Vec<Fact>,
    /// For each function.
    pub(crate) usage: Vec<Usage>,
    /// Comparisons of one register that are done by a look-up.
    pub(crate) chains: Chains,
    rewrites: Vec<Rewrite>,
}

impl Analysis {
    pub(crate) fn of(program: &Lowered) -> Analysis {
        let insns = program.insns();
        let mut facts = vec![Fact::default(); insns.len()];
        let mut edges = Vec::with_capacity(insns.len() / 4);
        for (slot, &insn) in insns.iter().enumerate() {
            if let Some(target) = jump_target(insn, slot) {
                if is_selection(insns, slot, target) {
                    facts[slot].is_selection = true;
                } else {
                    facts[target].is_target = true;
                }
                facts[target].is_loop |= target <= slot;
                edges.push(Edge {
                    slot: slot as u32,
                    target: target as u32,
                    conditional: lower::jumps::falls_through(insn),
                });
            }
        }
        for slot in 0..insns.len() {
            if facts[slot].is_selection && facts[slot + 1].is_target {
                facts[slot].is_selection = false;
                facts[slot + 2].is_target = true;
            }
        }
        let chains = find_chains(insns, &mut facts);
        // A classic filter's result is 32 bits.
        let result = match program.evidence() {
            Evidence::Classic(_) => Halves::low(Reg::R0),
            Evidence::Trusted => Halves::both(Reg::R0),
        };
        let mut transfers = Vec::with_capacity(insns.len());
        let mut usage = Vec::with_capacity(program.functions().len());
        for function in program.functions() {
            let mut used = Usage::default();
            for &insn in &insns[function.start..function.end] {
                let transfer = Transfer::of(insn, result);
                used.note(insn, transfer);
                transfers.push(transfer);
            }
            usage.push(used);
        }
        let mut rewrites = Vec::new();
        idiom::find(insns, &mut facts, &mut transfers, &mut rewrites);
        let mut rest = edges.as_slice();
        for (function, used) in program.functions().iter().zip(&mut usage) {
            let count = rest.partition_point(|edge| (edge.slot as usize) < function.end);
            let (edges, later) = rest.split_at(count);
            rest = later;
            used.loops = edges.iter().any(|edge| edge.target <= edge.slot);
            settle_liveness(*function, edges, insns, &transfers, &mut facts);
        }
        Analysis {
            facts,
            usage,
            chains,
            rewrites,
        }
    }

    /// How a slot is done otherwise than it is written.
    pub(crate) fn rewrite(&self, slot: usize) -> Option<Rewrite> {
        match self.facts[slot].rewrite {
            0 => None,
            index => Some(self.rewrites[index as usize - 1]),
        }
    }
}

/// The chains of comparisons. Their look-ups jump to every target, and their
/// comparisons are no selections.
fn find_chains(insns: &[Insn], facts: &mut [Fact]) -> Chains {
    let chains = Chains::find(insns, &Arrivals::of(insns));
    for chain in chains.iter() {
        for link in chain.links {
            let slot = link.slot as usize;
            facts[link.target as usize].is_target = true;
            if facts[slot].is_selection {
                facts[slot].is_selection = false;
                facts[slot + 2].is_target = true;
            }
        }
        facts[chain.default].is_target = true;
    }
    chains
}

/// Whether a branch leads over nothing but a move to a register, which is how
/// compilers write a choice between two values. They choose so where they expect
/// no pattern in the choice, so there is no jump to predict.
fn is_selection(insns: &[Insn], slot: usize, target: usize) -> bool {
    let over_one = target == slot + 2 && matches!(insns[slot], Insn::Jump { .. });
    over_one
        && match insns[slot + 1] {
            Insn::Alu {
                op: AluOp::Mov,
                src,
                ..
            } => src != Operand::Reg(Reg::R10),
            _ => false,
        }
}

fn settle_liveness(
    function: Function,
    edges: &[Edge],
    insns: &[Insn],
    transfers: &[Transfer],
    facts: &mut [Fact],
) {
    for pass in 0.. {
        let safe = pass == MOST_PASSES;
        if safe {
            for fact in &mut facts[function.start..function.end] {
                if fact.is_loop {
                    fact.before = Halves::ALL;
                }
            }
        }
        if !go_back(function, edges, insns, transfers, facts, safe) {
            return;
        }
    }
}

/// One pass backward; says whether a loop wants more at its beginning than the
/// pass assumed.
fn go_back(
    function: Function,
    edges: &[Edge],
    insns: &[Insn],
    transfers: &[Transfer],
    facts: &mut [Fact],
    safe: bool,
) -> bool {
    let mut changed = false;
    let mut edges = edges.iter().rev().peekable();
    let mut wanted = Halves::NONE;
    for slot in (function.start..function.end).rev() {
        if let Some(edge) = edges.next_if(|edge| edge.slot as usize == slot) {
            let there = facts[edge.target as usize].before;
            wanted = if edge.conditional {
                wanted.and(there)
            } else {
                there
            };
        } else if let Insn::Exit = insns[slot] {
            wanted = Halves::NONE;
        }
        let (before, needed) = transfers[slot].apply(wanted);
        let fact = &mut facts[slot];
        fact.after = wanted;
        fact.is_dead = !needed;
        wanted = before;
        if fact.is_loop {
            if safe {
                wanted = Halves::ALL;
            }
            changed |= before != fact.before && !safe;
        }
        fact.before = wanted;
    }
    changed
}
