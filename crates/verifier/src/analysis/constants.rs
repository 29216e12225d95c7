//! Constants in registers before the walk: a forward data flow over the postorder, iterated to a
//! fixpoint (`bpf_compute_const_regs`), and the branches that they decide
//! (`bpf_prune_dead_branches`), which become jumps.
//!
//! Cost: instructions times registers for each round; a register changes at most twice.

use isa::ebpf::{AluOp, Callee, Imm64, Insn, Operand, Reg, Width, eval};

use super::Analysis;
use super::order::compute_postorder;
use super::subprogs::NONE;
use crate::input::Input;
use crate::precise;
use crate::state::MapRef;

/// What is known of a register before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// The instruction was not reached (`ci_is_unvisited`).
    #[doc(alias = "ci_is_unvisited")]
    #[default]
    Unvisited,
    /// Nothing (`ci_is_unknown`).
    #[doc(alias = "ci_is_unknown")]
    Unknown,
    /// The number (`ci_is_const`).
    #[doc(alias = "ci_is_const")]
    Number(u64),
    /// The map that it points to.
    Map(MapRef),
    /// The offset in the value of the map that it points to (`ci_is_map_value`).
    #[doc(alias = "ci_is_map_value")]
    MapValue(MapRef, u64),
    /// The subprogram that it points to.
    Function(usize),
}

/// Registers of an instruction, r10 among them.
type Registers = [Known; 11];

/// What is known of registers before each instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants(Vec<Registers>);

impl Constants {
    /// Computes them (`bpf_compute_const_regs`).
    #[doc(alias = "bpf_compute_const_regs")]
    pub(crate) fn of(input: &Input<'_>, analysis: &Analysis) -> Constants {
        let mut before = vec![Registers::default(); input.insns.len()];
        for subprog in &analysis.subprogs {
            before[subprog.start as usize] = [Known::Unknown; 11];
        }
        loop {
            let mut changed = false;
            for &index in analysis.postorder.iter().rev() {
                let mut after = before[index as usize];
                transfer(input, analysis, index, &mut after);
                for next in analysis.next(index) {
                    changed |= join(&mut before[next as usize], &after);
                }
            }
            if !changed {
                return Constants(before);
            }
        }
    }

    fn known(&self, insn: u32, reg: Reg) -> Known {
        self.0[insn as usize][reg.index()]
    }

    /// The number in a register, if it has 32 bits.
    pub(crate) fn number(&self, insn: u32, reg: Reg) -> Option<u32> {
        match self.known(insn, reg) {
            Known::Number(value) => u32::try_from(value).ok(),
            _ => None,
        }
    }

    /// The map that a register points to.
    pub(crate) fn map(&self, insn: u32, reg: Reg) -> Option<MapRef> {
        match self.known(insn, reg) {
            Known::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The subprogram that a register points to.
    pub(crate) fn function(&self, insn: u32, reg: Reg) -> Option<usize> {
        match self.known(insn, reg) {
            Known::Function(subprog) => Some(subprog),
            _ => None,
        }
    }

    /// Makes jumps of the branches that constants decide (`bpf_prune_dead_branches`).
    #[doc(alias = "bpf_prune_dead_branches")]
    pub(crate) fn fold_branches(&self, input: &mut Input<'_>, analysis: &mut Analysis) {
        let mut changed = false;
        for index in 0..input.insns.len() {
            let Some(off) = self.decided(index as u32, input.insns[index]) else {
                continue;
            };
            let jump = Insn::Goto { off };
            let target = (index as u32 + 1).wrapping_add_signed(off.into());
            input.insns[index] = jump;
            analysis.successors[index] = [target, NONE];
            analysis.insns[index].concerned_regs = precise::concerned_regs(jump, input.rules);
            changed = true;
        }
        if changed {
            compute_postorder(analysis);
        }
    }

    /// Where a branch goes always (`eval_const_branch`).
    #[doc(alias = "eval_const_branch")]
    fn decided(&self, index: u32, insn: Insn) -> Option<i16> {
        let Insn::Jump {
            cond,
            width,
            dst,
            src,
            off,
        } = insn
        else {
            return None;
        };
        let left = u64::from(self.number(index, dst)?);
        let right = match src {
            Operand::Imm(imm) => i64::from(imm) as u64,
            Operand::Reg(src) => self.number(index, src)?.into(),
        };
        Some(match eval::compare(cond, width, left, right) {
            true => off,
            false => 0,
        })
    }
}

/// Joins what is known behind an instruction with what is known before the next; true if that
/// changes (`const_reg_join`).
#[doc(alias = "const_reg_join")]
fn join(before: &mut Registers, after: &Registers) -> bool {
    let mut changed = false;
    for (old, new) in before.iter_mut().zip(after) {
        let joined = match *old {
            Known::Unvisited => *new,
            Known::Unknown => Known::Unknown,
            known if known == *new => known,
            _ => Known::Unknown,
        };
        changed |= joined != *old;
        *old = joined;
    }
    changed
}

/// What is known behind an instruction (`const_reg_xfer`).
#[doc(alias = "const_reg_xfer")]
fn transfer(input: &Input<'_>, analysis: &Analysis, index: u32, regs: &mut Registers) {
    let at = |reg: Reg| reg.index();
    match input.insns[index as usize] {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let value = operation(op, regs[at(dst)], src, regs);
            regs[at(dst)] = match (width, value) {
                (Width::W64, value) => value,
                (Width::W32, Known::Number(value)) => Known::Number(u64::from(value as u32)),
                (Width::W32, _) => Known::Unknown,
            };
        }
        Insn::MovSx {
            width,
            from,
            dst,
            src,
        } => {
            let unused = 64 - 8 * from.bytes();
            regs[at(dst)] = match (regs[at(src)], width) {
                (Known::Number(value), _) => {
                    let value = ((value << unused) as i64 >> unused) as u64;
                    Known::Number(match width {
                        Width::W64 => value,
                        Width::W32 => u64::from(value as u32),
                    })
                }
                _ => Known::Unknown,
            };
        }
        Insn::LoadImm64 { dst, imm } => {
            regs[at(dst)] = match imm {
                Imm64::Value(value) => Known::Number(value.get()),
                Imm64::Func { off, .. } => {
                    let target = (index + 1).wrapping_add_signed(off);
                    (analysis.subprog_at(target)).map_or(Known::Unknown, Known::Function)
                }
                Imm64::MapFd { fd: map, .. } | Imm64::MapIndex { index: map, .. } => {
                    Known::Map(MapRef(map as u32))
                }
                Imm64::MapValue { fd: map, offset }
                | Imm64::MapIndexValue { index: map, offset } => {
                    Known::MapValue(MapRef(map as u32), u64::from(offset as u32))
                }
                Imm64::BtfId { .. } => Known::Unknown,
            };
        }
        Insn::Load {
            size,
            signed,
            dst,
            base,
            off,
        } => {
            regs[at(dst)] = match regs[at(base)] {
                Known::MapValue(map, offset) => {
                    let off = (offset as i32).wrapping_add(off.into());
                    constant_of(input, map, off, size.bytes(), signed)
                }
                _ => Known::Unknown,
            };
        }
        Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. } | Callee::Local(_))
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. } => regs[..6].fill(Known::Unknown),
        insn @ (Insn::Neg { .. }
        | Insn::Endian { .. }
        | Insn::Cast { .. }
        | Insn::Atomic { .. }
        | Insn::LoadAcquire { .. }) => {
            let written = insn.writes().bits();
            for (number, reg) in regs.iter_mut().enumerate() {
                if written & 1 << number != 0 {
                    *reg = Known::Unknown;
                }
            }
        }
        Insn::Imm64High
        | Insn::Store { .. }
        | Insn::StoreRelease { .. }
        | Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg { .. }
        | Insn::Exit
        | Insn::Invalid { .. } => {}
    }
}

/// The result of an operation on two operands, before it is extended.
fn operation(op: AluOp, dst: Known, src: Operand, regs: &Registers) -> Known {
    let other = match src {
        Operand::Imm(imm) => Known::Number(i64::from(imm) as u64),
        Operand::Reg(src) => regs[src.index()],
    };
    match op {
        AluOp::Mov => other,
        AluOp::And => match (dst, other) {
            (Known::Number(0), _) | (_, Known::Number(0)) => Known::Number(0),
            (Known::Number(a), Known::Number(b)) => Known::Number(a & b),
            _ => Known::Unknown,
        },
        AluOp::Add | AluOp::Sub => {
            let Operand::Imm(by) = src else {
                return Known::Unknown;
            };
            let by = match op == AluOp::Sub {
                true => (i64::from(by) as u64).wrapping_neg(),
                false => i64::from(by) as u64,
            };
            match dst {
                Known::Number(value) => Known::Number(value.wrapping_add(by)),
                Known::MapValue(map, off) => Known::MapValue(map, off.wrapping_add(by)),
                _ => Known::Unknown,
            }
        }
        AluOp::Mul
        | AluOp::Div
        | AluOp::SDiv
        | AluOp::Mod
        | AluOp::SMod
        | AluOp::Or
        | AluOp::Xor
        | AluOp::Lsh
        | AluOp::Rsh
        | AluOp::Arsh => Known::Unknown,
    }
}

/// A number in the value of a map that nothing changes (`bpf_map_direct_read`).
#[doc(alias = "bpf_map_direct_read")]
fn constant_of(input: &Input<'_>, map: MapRef, off: i32, size: u32, signed: bool) -> Known {
    let info = &input.maps[map];
    let is_inside = off >= 0 && off as u32 + size <= info.value_size();
    match is_inside && info.is_rdonly() && input.has_direct_value(map) {
        true => Known::Number(info.constant(off as u32, size, signed)),
        false => Known::Unknown,
    }
}
