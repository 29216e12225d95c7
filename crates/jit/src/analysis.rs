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

    /// Whether it reads the register.
    pub(crate) fn uses(self, reg: Reg) -> bool {
        self.reads.and(self.follows).has(reg)
    }

    /// Whether it writes the register.
    pub(crate) fn writes(self, reg: Reg) -> bool {
        self.writes.has(reg)
    }

    #[inline(always)]
    fn of(insn: Insn, result: Halves) -> Transfer {
        let compute = |dst: Reg, reads: Halves| Transfer::pure(reads, Halves::both(dst));
        let effect = |reads: Halves, writes: Halves| Transfer {
            reads,
            follows: Halves::NONE,
            writes,
            pure: false,
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
            } => ALU[op as usize][width as usize].transfer(dst, src),
            Insn::Load { dst, base, .. } => compute(dst, Halves::both(base)),
            Insn::Store {
                size, base, src, ..
            } => effect(Halves::both(base).and(stored(size, src)), Halves::NONE),
            Insn::Jump {
                width, dst, src, ..
            } => {
                let dst = Halves::operand(Operand::Reg(dst), width);
                effect(dst.and(Halves::operand(src, width)), Halves::NONE)
            }
            Insn::Neg { width, dst } => match width {
                Width::W32 => compute(dst, Halves::low(dst)),
                Width::W64 => Transfer {
                    follows: Halves::both(dst),
                    ..compute(dst, Halves::NONE)
                },
            },
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => {
                compute(dst, Halves::low(src))
            }
            Insn::Endian { order, size, dst } => match (order, size) {
                (ByteOrder::Little, Size::DW) => Transfer {
                    follows: Halves::both(dst),
                    ..compute(dst, Halves::NONE)
                },
                (_, Size::DW) => compute(dst, Halves::both(dst)),
                _ => compute(dst, Halves::low(dst)),
            },
            Insn::LoadImm64 { dst, .. } => compute(dst, Halves::NONE),
            Insn::LoadAcquire { dst, base, .. } => effect(Halves::both(base), Halves::both(dst)),
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
            Insn::Call(_) | Insn::CallReg { .. } => effect(ARGUMENTS, ARGUMENTS.and(RESULT)),
            Insn::Exit => effect(result, Halves::NONE),
            Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Invalid { .. } => effect(Halves::NONE, Halves::NONE),
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

/// What an arithmetic operation reads, as halves of register 0: shifted by a
/// register's number they are that register's.
#[derive(Clone, Copy)]
struct Reads {
    dst: u32,
    src: u32,
    /// As far as the result is wanted.
    follows_dst: u32,
    follows_src: u32,
}

const NEITHER: u32 = 0;
const LOW: u32 = 1;
const BOTH: u32 = 0x1_0001;

impl Reads {
    const fn of(op: AluOp, width: Width) -> Reads {
        let (dst, src, follows_dst, follows_src) = match (width, op) {
            (Width::W32, AluOp::Mov) => (NEITHER, LOW, NEITHER, NEITHER),
            (Width::W32, _) => (LOW, LOW, NEITHER, NEITHER),
            (Width::W64, AluOp::Mov) => (NEITHER, NEITHER, NEITHER, BOTH),
            (Width::W64, AluOp::Lsh) => (NEITHER, LOW, BOTH, NEITHER),
            (Width::W64, AluOp::Rsh | AluOp::Arsh) => (BOTH, LOW, NEITHER, NEITHER),
            (Width::W64, AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod) => {
                (BOTH, BOTH, NEITHER, NEITHER)
            }
            // The low half of the result depends on low halves alone.
            (Width::W64, _) => (NEITHER, NEITHER, BOTH, BOTH),
        };
        Reads {
            dst,
            src,
            follows_dst,
            follows_src,
        }
    }

    #[inline(always)]
    fn transfer(self, dst: Reg, src: Operand) -> Transfer {
        let (reg, read) = match src {
            Operand::Reg(reg) => (reg.number(), u32::MAX),
            Operand::Imm(_) => (0, 0),
        };
        let to = dst.number();
        Transfer {
            reads: Halves(self.dst << to | self.src << reg & read),
            follows: Halves(self.follows_dst << to | self.follows_src << reg & read),
            writes: Halves::both(dst),
            pure: true,
        }
    }
}

/// By operation and width.
const ALU: [[Reads; 2]; OPS.len()] = {
    let mut table = [[Reads::of(AluOp::Mov, Width::W32); 2]; OPS.len()];
    let mut index = 0;
    while index < OPS.len() {
        let op = OPS[index];
        table[op as usize][Width::W32 as usize] = Reads::of(op, Width::W32);
        table[op as usize][Width::W64 as usize] = Reads::of(op, Width::W64);
        index += 1;
    }
    table
};

const OPS: [AluOp; 14] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::Div,
    AluOp::SDiv,
    AluOp::Mod,
    AluOp::SMod,
    AluOp::Or,
    AluOp::And,
    AluOp::Xor,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Arsh,
    AluOp::Mov,
];

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

    /// `seen` is what the function's instructions read and write.
    fn note_registers(&mut self, seen: Halves) {
        self.regs = (seen.0 | seen.0 >> 16) as u16 & 0x7ff;
    }

    #[inline(always)]
    fn note(&mut self, insn: Insn, transfer: Transfer) {
        match insn {
            Insn::Load { base, off, .. } => self.note_access(base, off),
            Insn::Alu { op, .. } => {
                self.complex |= matches!(op, AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod);
                self.note_escape(transfer);
            }
            Insn::Store { base, off, src, .. } => {
                self.note_access(base, off);
                self.stack_escapes |= src == Operand::Reg(Reg::R10);
            }
            _ => self.note_rare(insn, transfer),
        }
    }

    fn note_rare(&mut self, insn: Insn, transfer: Transfer) {
        match insn {
            Insn::Call(Callee::Local(_)) => self.calls_functions = true,
            Insn::Call(_) => self.calls_helpers = true,
            Insn::PacketAbs { .. } => self.packet = true,
            Insn::MayGoto { .. } => self.may_goto = true,
            Insn::LoadAcquire { base, off, .. } => self.note_access(base, off),
            Insn::StoreRelease { base, off, src, .. } => {
                self.note_access(base, off);
                self.stack_escapes |= src == Reg::R10;
            }
            Insn::Atomic {
                op, base, off, src, ..
            } => {
                self.note_access(base, off);
                self.complex |= op.fetches_into_src();
                self.stack_escapes |= src == Reg::R10;
            }
            Insn::PacketInd { .. } => {
                self.packet = true;
                self.note_escape(transfer);
            }
            _ => self.note_escape(transfer),
        }
    }

    /// `r10` is read otherwise than as the base of an access.
    fn note_escape(&mut self, transfer: Transfer) {
        self.stack_escapes |= transfer.reads.and(transfer.follows).has(Reg::R10);
    }

    fn note_access(&mut self, base: Reg, off: i16) {
        if base == Reg::R10 {
            self.stack_accesses += 1;
            self.lowest_stack = self.lowest_stack.min(off);
        }
    }
}

/// How control leaves a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// To the next slot.
    #[default]
    Next,
    /// To the next slot or to the target.
    Branch,
    /// To the target.
    Goto,
    /// Out of the function.
    Exit,
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
    way: Way,
    /// Where a jump leads; for what is no jump and done in another way, the
    /// position in [`Analysis::rewrites`] and 1.
    link: u32,
}

impl Fact {
    /// Whether it is done otherwise than it is written.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.link != 0 && matches!(self.way, Way::Next)
    }

    /// Whether control may leave it for elsewhere and for the next slot.
    pub(crate) fn branches(&self) -> bool {
        self.way == Way::Branch
    }

    /// It is done in the way at this position.
    pub(crate) fn set_rewrite(&mut self, position: usize) {
        self.link = position as u32 + 1;
    }
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
        let mut transfers = Vec::with_capacity(insns.len());
        let mut usage = Vec::with_capacity(program.functions().len());
        let mut tests = 0;
        // A classic filter's result is 32 bits.
        let result = match program.evidence() {
            Evidence::Classic(_) => Halves::low(Reg::R0),
            Evidence::Trusted => Halves::both(Reg::R0),
        };
        for function in program.functions() {
            let mut used = Usage::default();
            let mut seen = Halves::NONE;
            for slot in function.start..function.end {
                let insn = insns[slot];
                let transfer = Transfer::of(insn, result);
                seen = seen
                    .and(transfer.reads)
                    .and(transfer.follows)
                    .and(transfer.writes);
                used.note(insn, transfer);
                transfers.push(transfer);
                if let Some(way) = way(insn) {
                    facts[slot].way = way;
                    if let Some(target) = jump_target(insn, slot) {
                        note_jump(insns, slot, target, &mut facts);
                        used.loops |= target <= slot;
                        tests += usize::from(way == Way::Branch);
                    }
                }
            }
            used.note_registers(seen);
            usage.push(used);
        }
        for slot in 0..insns.len() {
            if facts[slot].is_selection && facts[slot + 1].is_target {
                facts[slot].is_selection = false;
                facts[slot + 2].is_target = true;
            }
        }
        let chains = if tests >= lower::chains::SHORTEST {
            find_chains(insns, &mut facts)
        } else {
            Chains::default()
        };
        let rewrites = idiom::find(insns, &mut facts, &mut transfers);
        for (function, used) in program.functions().iter().zip(&usage) {
            settle_liveness(*function, used.loops, &transfers, &mut facts);
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
        let fact = &self.facts[slot];
        fact.is_rewritten()
            .then(|| self.rewrites[fact.link as usize - 1])
    }
}

/// How control leaves an instruction, if not to the next slot.
#[inline(always)]
fn way(insn: Insn) -> Option<Way> {
    match insn {
        Insn::Jump { .. } | Insn::MayGoto { .. } => Some(Way::Branch),
        Insn::Goto { .. } | Insn::GotoLong { .. } => Some(Way::Goto),
        Insn::Exit => Some(Way::Exit),
        _ => None,
    }
}

fn note_jump(insns: &[Insn], slot: usize, target: usize, facts: &mut [Fact]) {
    facts[slot].link = target as u32;
    if is_selection(insns, slot, target) {
        facts[slot].is_selection = true;
    } else {
        facts[target].is_target = true;
    }
    facts[target].is_loop |= target <= slot;
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

fn settle_liveness(function: Function, loops: bool, transfers: &[Transfer], facts: &mut [Fact]) {
    for pass in 0.. {
        let safe = pass == MOST_PASSES;
        if safe {
            for fact in &mut facts[function.start..function.end] {
                if fact.is_loop {
                    fact.before = Halves::ALL;
                }
            }
        }
        let changed = go_back(function, transfers, facts, safe);
        if !changed || !loops || safe {
            return;
        }
    }
}

/// One pass backward; says whether a loop wants more at its beginning than the
/// pass assumed.
fn go_back(function: Function, transfers: &[Transfer], facts: &mut [Fact], safe: bool) -> bool {
    let mut changed = false;
    let mut wanted = Halves::NONE;
    for slot in (function.start..function.end).rev() {
        let fact = facts[slot];
        match fact.way {
            Way::Next => {}
            Way::Branch => wanted = wanted.and(facts[fact.link as usize].before),
            Way::Goto => wanted = facts[fact.link as usize].before,
            Way::Exit => wanted = Halves::NONE,
        }
        let (before, needed) = transfers[slot].apply(wanted);
        let fact = &mut facts[slot];
        fact.after = wanted;
        fact.is_dead = !needed;
        wanted = before;
        if fact.is_loop {
            changed |= before != fact.before;
            if safe {
                wanted = Halves::ALL;
            }
        }
        fact.before = wanted;
    }
    changed
}
