//! Arithmetic that pointers do not allow.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::{Finding, check, memory};
use crate::mem::MAX_VAR_OFF;
use crate::reason::cause::{ArithmeticFault, BoundsFault, Cause, Check};
use crate::reason::describe;
use crate::reason::scene::Scene;
use crate::state::RegKind;
use AluOp::{Add, And, Arsh, Div, Lsh, Mod, Mov, Mul, Or, Rsh, SDiv, SMod, Sub, Xor};

/// The pointer and the other operand of an arithmetic instruction.
struct Operands {
    dst: Reg,
    src: Option<Reg>,
    pointer: Reg,
    are_both: bool,
}

fn operands(scene: &Scene<'_>, dst: Reg, src: Operand) -> Option<Operands> {
    let is_pointer = |reg| {
        let reg = scene.reg(reg);
        reg.is_some_and(|reg| !matches!(reg.kind, RegKind::Scalar | RegKind::NotInit))
    };
    let src = match src {
        Operand::Reg(src) => Some(src),
        Operand::Imm(_) => None,
    };
    let is_src = src.is_some_and(is_pointer);
    let pointer = match is_pointer(dst) {
        true => dst,
        false => src.filter(|_| is_src)?,
    };
    Some(Operands {
        dst,
        src,
        pointer,
        are_both: is_pointer(dst) && is_src,
    })
}

/// Refused arithmetic, and modified pointers where they must not be.
pub(super) fn forbidden(scene: &Scene<'_>) -> Option<Finding> {
    let (op, width, dst, src) = match scene.insn()? {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => (op, width, dst, src),
        Insn::MovSx { dst, src, .. } => (Mov, Width::W32, dst, Operand::Reg(src)),
        Insn::Neg { width, dst } => (Xor, width, dst, Operand::Imm(0)),
        Insn::Endian { dst, .. } => (Xor, Width::W64, dst, Operand::Imm(0)),
        _ => return memory::modified(scene),
    };
    if op == Mov {
        let Operand::Reg(src) = src else {
            return None;
        };
        return Some(finding(scene, src, ArithmeticFault::Partial, &[src]));
    }
    let operands = operands(scene, dst, src)?;
    let fault = operands.fault(scene, op, width);
    Some(operands.finding(scene, fault.unwrap_or(ArithmeticFault::Kind)))
}

/// Arithmetic that no pointer allows, whatever the number is.
pub(super) fn impossible(scene: &Scene<'_>) -> Option<Finding> {
    let Insn::Alu {
        op,
        width,
        dst,
        src,
    } = scene.insn()?
    else {
        return None;
    };
    let operands = operands(scene, dst, src)?;
    let fault = operands.fault(scene, op, width)?;
    Some(operands.finding(scene, fault))
}

impl Operands {
    /// The fault that an operation on the pointer has with every number.
    fn fault(&self, scene: &Scene<'_>, op: AluOp, width: Width) -> Option<ArithmeticFault> {
        let is_stack = || {
            let pointer = scene.reg(self.pointer);
            pointer.is_some_and(|pointer| matches!(pointer.kind, RegKind::Stack { .. }))
        };
        if self.are_both {
            return Some(ArithmeticFault::TwoPointers);
        }
        if width == Width::W32 {
            return Some(ArithmeticFault::Width32);
        }
        match op {
            Sub if self.pointer != self.dst => Some(ArithmeticFault::FromNumber),
            Sub if is_stack() => Some(ArithmeticFault::FromStack),
            Add | Sub => None,
            And | Or | Xor | Mul | Div | SDiv | Mod | SMod | Lsh | Rsh | Arsh | Mov => {
                Some(ArithmeticFault::Operation)
            }
        }
    }

    /// The operand that is not the pointer.
    fn number(&self) -> Option<Reg> {
        let operands = [Some(self.dst), self.src].into_iter().flatten();
        operands.into_iter().find(|reg| *reg != self.pointer)
    }

    /// A finding that tells the history of the pointer.
    fn finding(&self, scene: &Scene<'_>, fault: ArithmeticFault) -> Finding {
        let subjects = [Some(self.pointer), self.number()];
        let subjects: Vec<Reg> = subjects.into_iter().flatten().collect();
        finding(scene, self.pointer, fault, &subjects)
    }
}

fn finding(scene: &Scene<'_>, pointer: Reg, fault: ArithmeticFault, subjects: &[Reg]) -> Finding {
    let kind = memory::kind_of(scene, pointer);
    let cause = Cause::Arithmetic {
        reg: pointer.number(),
        kind,
        fault,
        check: Check::NotApplicable,
    };
    Finding::about(scene, cause, subjects)
}

/// A number that is added to a pointer or subtracted from it, and is not bounded.
pub(super) fn unbounded(scene: &Scene<'_>) -> Option<Finding> {
    if let Some(finding) = impossible(scene) {
        return Some(finding);
    }
    let Insn::Alu { op, dst, src, .. } = scene.insn()? else {
        return None;
    };
    let operands = operands(scene, dst, src)?;
    let pointer = scene.reg(operands.pointer)?;
    let kind = describe::pointer_kind(scene.input, scene.frame(), pointer);
    let Some(number) = operands.number() else {
        let Operand::Imm(imm) = src else {
            return None;
        };
        let fault = ArithmeticFault::TooFar(i64::from(imm));
        return Some(finding(scene, operands.pointer, fault, &[operands.pointer]));
    };
    let num = scene.reg(number)?.num;
    let fault = match num.as_const() {
        Some(value) => ArithmeticFault::TooFar(value as i64),
        None if num.smin == i64::MIN || num.smax == i64::MAX => {
            let is_subtracted = op == Sub;
            ArithmeticFault::Unbounded { is_subtracted }
        }
        None if num.smin < -MAX_VAR_OFF => ArithmeticFault::TooFar(num.smin),
        None => ArithmeticFault::TooFar(num.smax),
    };
    let side = match fault {
        ArithmeticFault::TooFar(..0) => BoundsFault::Below,
        _ => BoundsFault::Unbounded,
    };
    let (check, notes) = match num.is_const() {
        true => (Check::NotApplicable, Vec::new()),
        false => check::find_check(scene, scene.def(number), side),
    };
    let cause = Cause::Arithmetic {
        reg: operands.pointer.number(),
        kind,
        fault,
        check,
    };
    let mut finding = Finding::about(scene, cause, &[number, operands.pointer]);
    notes.into_iter().for_each(|note| finding.add(note));
    Some(finding)
}
