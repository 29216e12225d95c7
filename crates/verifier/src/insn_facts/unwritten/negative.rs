//! Registers that are negative as long as a call of a helper has failed, and the comparisons that
//! prove that it succeeded.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};

use super::InsnFact;

/// Registers that hold negative numbers if a call of a helper has failed, one bit each. Those that
/// hold its result do: an error is greater than -2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negative {
    /// All 64 bits are a negative number.
    whole: u16,
    /// The lower half is one.
    low: u16,
}

impl Negative {
    pub(super) const EMPTY: Negative = Negative { whole: 0, low: 0 };
    /// Behind the call.
    pub(super) const RESULT: Negative = Negative { whole: 1, low: 1 };

    pub(super) fn intersection(self, other: Negative) -> Negative {
        Negative {
            whole: self.whole & other.whole,
            low: self.low & other.low,
        }
    }

    /// What is known of a register: of all 64 bits, and of the lower half.
    fn of(self, reg: Reg) -> (bool, bool) {
        (self.whole & bit(reg) != 0, self.low & bit(reg) != 0)
    }

    /// The registers after an instruction.
    pub(super) fn after(self, insn: &Insn, constants: &InsnFact) -> Negative {
        let mut after = self;
        let mut clear = |registers: u16| {
            after.whole &= !registers;
            after.low &= !registers;
        };
        insn.writes().iter().for_each(|reg| clear(bit(reg)));
        if let Some((dst, whole, low)) = self.computed(insn, constants) {
            after.whole |= if whole { bit(dst) } else { 0 };
            after.low |= if low { bit(dst) } else { 0 };
        }
        after
    }

    /// What is known of the register that an instruction computes.
    fn computed(self, insn: &Insn, constants: &InsnFact) -> Option<(Reg, bool, bool)> {
        let (op, width, dst, src) = match *insn {
            Insn::MovSx {
                width: Width::W64,
                from: Size::W,
                dst,
                src,
            } => {
                let (_, low) = self.of(src);
                return Some((dst, low, low));
            }
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => (op, width, dst, src),
            _ => return None,
        };
        let (whole, low) = self.of(dst);
        let (other_whole, other_low) = match src {
            Operand::Reg(src) => self.of(src),
            Operand::Imm(_) => (false, false),
        };
        let number = number(src, constants);
        let (whole, low) = match (op, number) {
            (AluOp::Mov, _) => (other_whole, other_low),
            (AluOp::Or, _) => (whole || other_whole, low || other_low),
            (AluOp::And, Some(mask)) => (whole && mask < 0, low && (mask as i32) < 0),
            // Code for machines without operations on lower halves.
            (AluOp::Lsh, Some(32)) if width == Width::W64 => (low, false),
            (AluOp::Rsh, Some(32)) if width == Width::W64 => (false, whole),
            (AluOp::Arsh, Some(32..64)) if width == Width::W64 => (whole, whole),
            _ => return None,
        };
        Some((dst, whole && width == Width::W64, low))
    }

    /// The successor of a conditional jump that is not taken after a failure.
    pub(super) fn success(self, insn: &Insn, constants: &InsnFact) -> Option<Edge> {
        let Insn::Jump {
            cond,
            width,
            dst,
            src,
            ..
        } = *insn
        else {
            return None;
        };
        let (cond, reg, number) = match (number(src, constants), src) {
            (Some(number), _) => (cond, dst, number),
            (None, Operand::Reg(src)) => {
                (mirrored(cond), src, number(Operand::Reg(dst), constants)?)
            }
            (None, Operand::Imm(_)) => return None,
        };
        let (whole, low) = match (self.of(reg), width) {
            (known, Width::W64) => known,
            ((_, low), Width::W32) => (false, low),
        };
        let (number, lower_half) = match width {
            Width::W64 => (number, number as i32),
            Width::W32 => (i64::from(number as i32), number as i32),
        };
        // The number that is known to be negative, if the comparison is a signed one.
        let is_signed = match width {
            Width::W64 => whole,
            Width::W32 => low,
        };
        // Numbers up to this one, unsigned, are not negative.
        let is_low = whole && number >= 0 || low && (0..=i64::from(i32::MAX)).contains(&number);
        let is_equal = whole && number >= 0 || low && lower_half >= 0;
        let has_sign = whole && number < 0 || low && lower_half < 0;
        match cond {
            Cond::Eq if is_equal => Some(Edge::Target),
            Cond::Ne if is_equal => Some(Edge::Next),
            Cond::Set if has_sign => Some(Edge::Next),
            Cond::SGt if is_signed && number >= -1 => Some(Edge::Target),
            Cond::SGe if is_signed && number >= 0 => Some(Edge::Target),
            Cond::SLt if is_signed && number >= 0 => Some(Edge::Next),
            Cond::SLe if is_signed && number >= -1 => Some(Edge::Next),
            Cond::Le | Cond::Lt if is_low => Some(Edge::Target),
            Cond::Gt | Cond::Ge if is_low => Some(Edge::Next),
            _ => None,
        }
    }
}

/// The condition with its operands exchanged.
fn mirrored(cond: Cond) -> Cond {
    match cond {
        Cond::Eq | Cond::Ne | Cond::Set => cond,
        Cond::Gt => Cond::Lt,
        Cond::Ge => Cond::Le,
        Cond::Lt => Cond::Gt,
        Cond::Le => Cond::Ge,
        Cond::SGt => Cond::SLt,
        Cond::SGe => Cond::SLe,
        Cond::SLt => Cond::SGt,
        Cond::SLe => Cond::SGe,
    }
}

/// The value of an operand, if it is always the same.
fn number(operand: Operand, constants: &InsnFact) -> Option<i64> {
    match operand {
        Operand::Imm(imm) => Some(imm.into()),
        Operand::Reg(reg) => Some(constants.operand(reg)?.constant()? as i64),
    }
}

/// A successor of a conditional jump, as [`crate::analysis::Analysis::successors`] orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Next,
    Target,
}

fn bit(reg: Reg) -> u16 {
    1 << reg.index()
}
