//! Which instructions become one operation.
//!
//! A sequence is fused only where no jump leads into its middle. A chain of
//! comparisons is followed through the program instead (`if w0 == 1 goto a; if
//! w0 != 2 goto b; …; b: if w0 == 3 …`), because it may be laid out either way.
//! Every slot is followed as part of at most one chain, so the work is linear.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};

/// Chains from this length on are looked up in a table.
const SHORTEST_CHAIN: usize = 4;

/// How often each slot is jumped to.
pub(crate) struct Arrivals(Vec<u32>);

impl Arrivals {
    pub(crate) fn of(insns: &[Insn]) -> Arrivals {
        let mut arrivals = vec![0; insns.len()];
        for (slot, &insn) in insns.iter().enumerate() {
            if let Some(target) = jump_target(insn, slot)
                && let Some(count) = arrivals.get_mut(target)
            {
                *count += 1;
            }
        }
        Arrivals(arrivals)
    }

    /// Whether some jump leads there.
    pub(crate) fn any(&self, slot: usize) -> bool {
        self.0[slot] != 0
    }

    /// Whether `count` slots after `slot` are only reached by falling through.
    fn none_within(&self, slot: usize, count: usize) -> bool {
        (slot + 1..=slot + count).all(|slot| !self.any(slot))
    }
}

/// Where a jump at `slot` leads; `None` for what does not jump.
pub(crate) fn jump_target(insn: Insn, slot: usize) -> Option<usize> {
    let distance = match insn {
        Insn::Jump { off, .. } | Insn::Goto { off } | Insn::MayGoto { off } => i64::from(off),
        Insn::GotoLong { off } => i64::from(off),
        _ => return None,
    };
    usize::try_from(slot as i64 + 1 + distance).ok()
}

/// `w0 = imm; exit`.
pub(crate) fn constant_return(insns: &[Insn], at: &Arrivals, slot: usize) -> Option<i32> {
    match insns[slot..] {
        [mov, Insn::Exit, ..] if at.none_within(slot, 1) => mov_imm(mov, Reg::R0),
        _ => None,
    }
}

fn mov_imm(insn: Insn, to: Reg) -> Option<i32> {
    match insn {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst,
            src: Operand::Imm(imm),
        } if dst == to => Some(imm),
        _ => None,
    }
}

/// What follows a packet load: `w0 &= 15; w0 <<= 2; wN = w0` gives `N`.
pub(crate) fn header_length(insns: &[Insn], at: &Arrivals, slot: usize) -> Option<Reg> {
    const MASK: Insn = w0(AluOp::And, 15);
    const SHIFT: Insn = w0(AluOp::Lsh, 2);
    match insns[slot + 1..] {
        [MASK, SHIFT, mov, ..] if at.none_within(slot, 3) => match mov {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W32,
                dst,
                src: Operand::Reg(Reg::R0),
            } if dst != Reg::R0 => Some(dst),
            _ => None,
        },
        _ => None,
    }
}

const fn w0(op: AluOp, imm: i32) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst: Reg::R0,
        src: Operand::Imm(imm),
    }
}

/// A forward branch of a 32-bit register on a constant.
#[derive(Clone, Copy)]
pub(crate) struct Test {
    pub cond: Cond,
    pub dst: Reg,
    pub imm: i32,
    pub target: usize,
}

/// The branch at `slot`, if it is such.
pub(crate) fn forward_test(insns: &[Insn], slot: usize) -> Option<Test> {
    match *insns.get(slot)? {
        Insn::Jump {
            cond,
            width: Width::W32,
            dst,
            src: Operand::Imm(imm),
            off,
        } if off >= 0 => Some(Test {
            cond,
            dst,
            imm,
            target: slot + 1 + off as usize,
        }),
        _ => None,
    }
}

/// The test directly after `slot`, if only `slot` leads to it.
pub(crate) fn test_after(insns: &[Insn], at: &Arrivals, slot: usize, dst: Reg) -> Option<Test> {
    let test = forward_test(insns, slot + 1)?;
    (test.dst == dst && !at.any(slot + 1)).then_some(test)
}

/// A chain of comparisons of one register for equality.
pub(crate) struct Chain {
    pub dst: Reg,
    /// Key and target slot, in the order of testing.
    pub cases: Vec<(u32, usize)>,
    /// Where a value that is no key goes.
    pub default: usize,
    /// The slots of the tests.
    pub slots: Vec<usize>,
}

/// One link of a chain: the constant, where control goes when the register
/// equals it, and where the next link would stand.
struct Link {
    key: u32,
    equal: usize,
    next: usize,
}

fn link(insns: &[Insn], slot: usize, dst: Reg, taken: &[bool]) -> Option<Link> {
    let test = forward_test(insns, slot)?;
    if test.dst != dst || taken[slot] {
        return None;
    }
    let (equal, next) = match test.cond {
        Cond::Eq => (test.target, slot + 1),
        Cond::Ne => (slot + 1, test.target),
        _ => return None,
    };
    Some(Link {
        key: test.imm as u32,
        equal,
        next,
    })
}

/// Whether a chain begins at `slot` that is worth a table.
pub(crate) fn is_chain(insns: &[Insn], slot: usize, taken: &[bool]) -> bool {
    let Some(test) = forward_test(insns, slot) else {
        return false;
    };
    let mut at = slot;
    (0..SHORTEST_CHAIN).all(|_| match link(insns, at, test.dst, taken) {
        Some(link) => {
            at = link.next;
            true
        }
        None => false,
    })
}

/// Follows the chain that begins at `slot`; `None` where it is short.
pub(crate) fn chain(insns: &[Insn], slot: usize, taken: &[bool]) -> Option<Chain> {
    if !is_chain(insns, slot, taken) {
        return None;
    }
    let dst = forward_test(insns, slot)?.dst;
    let mut chain = Chain {
        dst,
        cases: Vec::new(),
        default: slot,
        slots: Vec::new(),
    };
    while let Some(link) = link(insns, chain.default, dst, taken) {
        chain.cases.push((link.key, link.equal));
        chain.slots.push(chain.default);
        chain.default = link.next;
    }
    Some(chain)
}

/// Whether the slot is a byte-sized packet load at a constant.
pub(crate) fn is_byte_load(insn: Insn) -> bool {
    matches!(insn, Insn::PacketAbs { size: Size::B, .. })
}

/// Whether control can go from this instruction to the next slot.
pub(crate) fn falls_through(insn: Insn) -> bool {
    !matches!(
        insn,
        Insn::Exit | Insn::Goto { .. } | Insn::GotoLong { .. } | Insn::GotoReg { .. }
    )
}

impl Arrivals {
    /// Whether the test at `slot` is reached from the chain alone.
    pub(crate) fn only_from_chain(&self, insns: &[Insn], slot: usize, previous: usize) -> bool {
        let fallen_into = slot > 0 && slot - 1 != previous && falls_through(insns[slot - 1]);
        let jumped_to = self.0[slot];
        let by_chain = u32::from(jump_target(insns[previous], previous) == Some(slot));
        !fallen_into && jumped_to == by_chain
    }
}
