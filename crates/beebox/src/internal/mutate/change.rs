//! Changes of one instruction.

use isa::ebpf::{AluOp, AtomicOp, Callee, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width};

/// An instruction that does nothing.
const NOTHING: Insn = Insn::Goto { off: 0 };

/// What a call of nothing returns.
const NO_CALL: Insn = Insn::Alu {
    op: AluOp::Mov,
    width: Width::W64,
    dst: Reg::R0,
    src: Operand::Imm(0),
};

/// The changes of an instruction; with `all` other registers and jump targets, too.
pub(super) fn changes(insn: Insn, all: bool) -> Vec<Insn> {
    let mut changes = usual(insn);
    if all {
        changes.extend(others(insn));
    }
    changes.retain(|change| *change != insn);
    let mut different: Vec<Insn> = Vec::new();
    for change in changes {
        if !different.contains(&change) {
            different.push(change);
        }
    }
    different
}

/// Operators, conditions, constants, sizes, and leaving something out.
fn usual(insn: Insn) -> Vec<Insn> {
    match insn {
        Insn::Jump {
            cond,
            width,
            dst,
            src,
            off,
        } => {
            let jump = |cond, src| Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            };
            let mut changes = vec![Insn::Goto { off }, NOTHING];
            changes.extend(cond.inverse().map(|cond| jump(cond, src)));
            changes.extend(neighbour(cond).map(|cond| jump(cond, src)));
            changes.extend(constants(src).map(|src| jump(cond, src)));
            changes
        }
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let alu = |op, src| Insn::Alu {
                op,
                width,
                dst,
                src,
            };
            let mut changes: Vec<Insn> = other_op(op).map(|op| alu(op, src)).into_iter().collect();
            changes.extend(constants(src).map(|src| alu(op, src)));
            changes
        }
        Insn::Neg { .. } | Insn::Endian { .. } => vec![NOTHING],
        Insn::MovSx {
            width, dst, src, ..
        } => vec![Insn::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src: Operand::Reg(src),
        }],
        Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(value),
        } => {
            let imm = Imm64::Value(Value64::new(value.get().wrapping_add(1)));
            vec![Insn::LoadImm64 { dst, imm }]
        }
        Insn::Load {
            size,
            signed,
            dst,
            base,
            off,
        } => {
            let load = |size, off| Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            };
            let next = off.saturating_add(size.bytes() as i16);
            let mut changes = vec![load(size, next)];
            changes.extend(smaller(size).map(|size| load(size, off)));
            changes
        }
        Insn::Store {
            size,
            base,
            off,
            src,
        } => {
            let mut changes = vec![NOTHING];
            let stores = constants(src).map(|src| Insn::Store {
                size,
                base,
                off,
                src,
            });
            changes.extend(stores);
            changes
        }
        Insn::Atomic {
            op: AtomicOp::Add { fetch: false },
            size,
            base,
            off,
            src,
        } => vec![
            NOTHING,
            Insn::Atomic {
                op: AtomicOp::Or { fetch: false },
                size,
                base,
                off,
                src,
            },
        ],
        Insn::Call(Callee::Helper(_) | Callee::Local(_)) => vec![NO_CALL],
        Insn::Atomic { .. }
        | Insn::Call(Callee::Kfunc { .. })
        | Insn::StoreRelease { .. }
        | Insn::LoadAcquire { .. }
        | Insn::LoadImm64 { .. }
        | Insn::Imm64High
        | Insn::Cast { .. }
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg { .. }
        | Insn::Exit
        | Insn::Invalid { .. } => Vec::new(),
    }
}

/// Other registers, offsets and jump targets.
fn others(insn: Insn) -> Vec<Insn> {
    let registers = (0..10).filter_map(Reg::new);
    match insn {
        Insn::Jump {
            cond,
            width,
            dst,
            src,
            off,
        } => {
            let offs = [off.saturating_add(1), off.saturating_sub(1)];
            let jumps = offs.into_iter().map(|off| Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            });
            let of_others = registers.map(|dst| Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            });
            jumps.chain(of_others).collect()
        }
        Insn::Alu {
            op,
            width,
            dst,
            src: Operand::Reg(_),
        } => registers
            .map(|src| Insn::Alu {
                op,
                width,
                dst,
                src: Operand::Reg(src),
            })
            .collect(),
        Insn::Alu {
            op,
            width,
            dst,
            src: Operand::Imm(imm),
        } => (0..8)
            .map(|bit| Insn::Alu {
                op,
                width,
                dst,
                src: Operand::Imm(imm ^ 1 << bit),
            })
            .collect(),
        Insn::Load {
            size,
            signed,
            dst,
            base,
            off,
        } => (-4..=4)
            .map(|by| Insn::Load {
                size,
                signed,
                dst,
                base,
                off: off.saturating_add(by),
            })
            .collect(),
        Insn::Store {
            size,
            base,
            off,
            src: Operand::Reg(_),
        } => registers
            .map(|src| Insn::Store {
                size,
                base,
                off,
                src: Operand::Reg(src),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Neighbouring constants, and zero.
fn constants(src: Operand) -> impl Iterator<Item = Operand> {
    let constants = match src {
        Operand::Imm(imm) => vec![imm.wrapping_add(1), imm.wrapping_sub(1), 0],
        Operand::Reg(_) => Vec::new(),
    };
    constants.into_iter().map(Operand::Imm)
}

/// The condition that differs where both sides are equal.
fn neighbour(cond: Cond) -> Option<Cond> {
    match cond {
        Cond::Eq | Cond::Ne | Cond::Set => None,
        Cond::Gt => Some(Cond::Ge),
        Cond::Ge => Some(Cond::Gt),
        Cond::Lt => Some(Cond::Le),
        Cond::Le => Some(Cond::Lt),
        Cond::SGt => Some(Cond::SGe),
        Cond::SGe => Some(Cond::SGt),
        Cond::SLt => Some(Cond::SLe),
        Cond::SLe => Some(Cond::SLt),
    }
}

/// The operation that is often meant in place of one.
fn other_op(op: AluOp) -> Option<AluOp> {
    match op {
        AluOp::Add => Some(AluOp::Sub),
        AluOp::Sub => Some(AluOp::Add),
        AluOp::Mul => Some(AluOp::Add),
        AluOp::Div => Some(AluOp::Mul),
        AluOp::SDiv => Some(AluOp::Div),
        AluOp::Mod => Some(AluOp::Div),
        AluOp::SMod => Some(AluOp::Mod),
        AluOp::Or => Some(AluOp::And),
        AluOp::And => Some(AluOp::Or),
        AluOp::Xor => Some(AluOp::Or),
        AluOp::Lsh => Some(AluOp::Rsh),
        AluOp::Rsh => Some(AluOp::Lsh),
        AluOp::Arsh => Some(AluOp::Rsh),
        AluOp::Mov => None,
    }
}

fn smaller(size: Size) -> Option<Size> {
    match size {
        Size::B => None,
        Size::H => Some(Size::B),
        Size::W => Some(Size::H),
        Size::DW => Some(Size::W),
    }
}
