//! Which bits of a load the instructions behind it use: programs load the unit that holds a bit field, and
//! shift or mask the others away.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width, eval};

/// Most instructions that are looked at.
const MOST_INSNS: usize = 64;

/// A register that holds bits of the load.
#[derive(Clone, Copy)]
struct Held {
    /// Bits of the load.
    bits: u64,
    /// Their distance to the left.
    shift: i32,
}

impl Held {
    /// Those whose place in the register has a property.
    fn keep(&mut self, is_kept: impl Fn(i32) -> bool) {
        let kept = (0..64).filter(|bit| is_kept(bit + self.shift));
        self.bits &= kept.fold(0, |mask, bit| mask | 1 << bit);
    }
}

/// The bits of a load that are used; all that registers hold where the path forks or ends.
pub(super) fn demanded(insns: &[Insn], load: usize, size: u32, regs: &[u64]) -> u64 {
    let Some(Insn::Load { dst, signed, .. }) = insns.get(load) else {
        return u64::MAX;
    };
    let all = u64::MAX >> (64 - 8 * size.clamp(1, 8));
    if *signed {
        return all;
    }
    let mut held = [None; Reg::COUNT];
    let mut known: Vec<Option<u64>> = regs.iter().map(|value| Some(*value)).collect();
    known.resize(Reg::COUNT, None);
    held[dst.index()] = Some(Held {
        bits: all,
        shift: 0,
    });
    known[dst.index()] = None;
    let mut used = 0;
    let mut at = load + 1;
    for _ in 0..MOST_INSNS {
        let Some(insn) = insns.get(at) else {
            break;
        };
        at += 1;
        match *insn {
            Insn::Goto { off } => {
                let Some(to) = at.checked_add_signed(isize::from(off)) else {
                    break;
                };
                at = to;
                continue;
            }
            // One that the numbers of the program decide.
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let right = match src {
                    Operand::Imm(_) => Some(eval::operand(src, &[0; Reg::COUNT])),
                    Operand::Reg(reg) => known[reg.index()],
                };
                if let (Some(left), Some(right)) = (known[dst.index()], right) {
                    if eval::compare(cond, width, left, right) {
                        let Some(to) = at.checked_add_signed(isize::from(off)) else {
                            break;
                        };
                        at = to;
                    }
                    continue;
                }
            }
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let value = match src {
                    Operand::Imm(imm) => Some(imm as i64 as u64),
                    Operand::Reg(reg) => known[reg.index()],
                };
                let bits = if width == Width::W32 { 32 } else { 64 };
                if op == AluOp::Mov {
                    held[dst.index()] = match src {
                        Operand::Reg(from) => held[from.index()],
                        Operand::Imm(_) => None,
                    };
                    known[dst.index()] = value;
                    if let Some(held) = &mut held[dst.index()] {
                        held.keep(|place| place < bits);
                    }
                    continue;
                }
                if let (Some(of_load), Some(value)) = (&mut held[dst.index()], value)
                    && matches!(op, AluOp::And | AluOp::Lsh | AluOp::Rsh | AluOp::Arsh)
                {
                    let count = (value & (bits as u64 - 1)) as i32;
                    of_load.keep(|place| place < bits);
                    match op {
                        AluOp::Lsh => of_load.shift += count,
                        AluOp::Rsh | AluOp::Arsh => of_load.shift -= count,
                        _ => of_load.keep(|place| place >= 0 && value & 1 << place != 0),
                    }
                    of_load.keep(|place| (0..bits).contains(&place));
                    continue;
                }
            }
            _ => {}
        }
        let takes = |reg: Reg| held[reg.index()].map_or(0, |held| held.bits);
        used |= insn
            .reads()
            .iter()
            .map(takes)
            .fold(0, |all, bits| all | bits);
        for reg in insn.writes().iter() {
            held[reg.index()] = None;
            known[reg.index()] = None;
        }
        let goes_on = matches!(
            insn,
            Insn::Alu { .. }
                | Insn::Neg { .. }
                | Insn::MovSx { .. }
                | Insn::Endian { .. }
                | Insn::LoadImm64 { .. }
                | Insn::Imm64High
                | Insn::Load { .. }
                | Insn::Store { .. }
                | Insn::Call(_)
        );
        if !goes_on {
            break;
        }
    }
    let rest = held.iter().flatten().map(|held| held.bits);
    rest.fold(used, |all, bits| all | bits)
}

#[cfg(test)]
mod tests {
    use isa::ebpf::{Cond, Size};

    use super::*;

    fn alu(op: AluOp, dst: Reg, src: Operand) -> Insn {
        Insn::Alu {
            op,
            width: Width::W64,
            dst,
            src,
        }
    }

    #[test]
    fn shifts_and_masks_say_which_bits_are_used() {
        let load = |signed| Insn::Load {
            size: Size::W,
            signed,
            dst: Reg::R1,
            base: Reg::R2,
            off: 0,
        };
        let imm = |op, imm| alu(op, Reg::R1, Operand::Imm(imm));
        let store = Insn::Store {
            size: Size::W,
            base: Reg::R10,
            off: -8,
            src: Operand::Reg(Reg::R1),
        };
        let copy = alu(AluOp::Mov, Reg::R3, Operand::Reg(Reg::R1));
        let of_copy = alu(AluOp::And, Reg::R3, Operand::Imm(1));
        let by_register = alu(AluOp::Lsh, Reg::R1, Operand::Reg(Reg::R4));
        let is_signed = |off| Insn::Jump {
            cond: Cond::Eq,
            width: Width::W64,
            dst: Reg::R4,
            src: Operand::Imm(43),
            off,
        };
        let all = u64::from(u32::MAX);
        let [left, right] = [imm(AluOp::Lsh, 43), imm(AluOp::Rsh, 63)];
        let cases: [(&[Insn], u64); 8] = [
            (&[load(false), left, is_signed(1), store, right], 1 << 20),
            (
                &[load(false), imm(AluOp::Lsh, 43), imm(AluOp::Rsh, 63)],
                1 << 20,
            ),
            (&[load(false), imm(AluOp::And, 0x10)], 0x10),
            (&[load(false), copy, of_copy, imm(AluOp::And, 2)], 3),
            (&[load(false), by_register, imm(AluOp::Rsh, 63)], 1 << 20),
            (&[load(false), store, imm(AluOp::And, 1)], all),
            (&[load(false), imm(AluOp::Add, 1), imm(AluOp::And, 1)], all),
            (&[load(true), imm(AluOp::And, 1)], all),
        ];
        let mut regs = [0; Reg::COUNT];
        regs[Reg::R4.index()] = 43;
        for (insns, bits) in cases {
            assert_eq!(demanded(insns, 0, 4, &regs), bits, "{insns:?}");
        }
    }
}
