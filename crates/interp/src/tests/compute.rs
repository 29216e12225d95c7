//! Arithmetic, moves, byte order, branches.

use isa::ebpf::{AddrSpaceCast, AluOp, ByteOrder, Cond, Insn, Operand, Reg, Size, Width, eval};

use super::{IMMS, REGS, VALUES, WIDTHS, result, run, set};

#[test]
fn arithmetic_matches_eval_in_every_register() {
    use AluOp::*;
    for op in [
        Add, Sub, Mul, Div, SDiv, Mod, SMod, Or, And, Xor, Lsh, Rsh, Arsh, Mov,
    ] {
        for width in WIDTHS {
            for dst in REGS {
                for a in VALUES {
                    for imm in IMMS {
                        let insn = Insn::Alu {
                            op,
                            width,
                            dst,
                            src: Operand::Imm(imm),
                        };
                        let expected = eval::alu(op, width, a, imm as i64 as u64);
                        assert_eq!(result(dst, a, None, insn), expected, "{insn:?} {a:#x}");
                    }
                    for (src, b) in REGS.into_iter().zip(VALUES).filter(|&(src, _)| src != dst) {
                        let insn = Insn::Alu {
                            op,
                            width,
                            dst,
                            src: Operand::Reg(src),
                        };
                        let expected = eval::alu(op, width, a, b);
                        let result = result(dst, a, Some((src, b)), insn);
                        assert_eq!(result, expected, "{insn:?} {a:#x} {b:#x}");
                    }
                }
            }
        }
    }
}

#[test]
fn unary_operations_match_eval_in_every_register() {
    for (index, value) in VALUES.into_iter().enumerate() {
        let (dst, src) = (REGS[index % 3], REGS[(index + 1) % 3]);
        for width in WIDTHS {
            let insn = Insn::Neg { width, dst };
            assert_eq!(result(dst, value, None, insn), eval::neg(width, value));
            for from in [Size::B, Size::H, Size::W] {
                if (width, from) == (Width::W32, Size::W) {
                    continue; // That is a plain move.
                }
                let insn = Insn::MovSx {
                    width,
                    from,
                    dst,
                    src,
                };
                let result = result(dst, 0, Some((src, value)), insn);
                assert_eq!(
                    result,
                    eval::mov_sx(width, from, value),
                    "{insn:?} {value:#x}"
                );
            }
        }
        for order in [ByteOrder::Little, ByteOrder::Big, ByteOrder::Swap] {
            for size in [Size::H, Size::W, Size::DW] {
                let insn = Insn::Endian { order, size, dst };
                let result = result(dst, value, None, insn);
                assert_eq!(
                    result,
                    eval::endian(order, size, value),
                    "{insn:?} {value:#x}"
                );
            }
        }
    }
}

#[test]
fn branches_match_eval() {
    use Cond::*;
    let taken = |dst, a, src, insn| {
        let mut program = Vec::from(set(dst, a));
        if let Some((src, b)) = src {
            program.extend(set(src, b));
        }
        program.push(insn);
        for value in [0, 1] {
            let (op, src) = (AluOp::Mov, Operand::Imm(value));
            program.push(Insn::Alu {
                op,
                width: Width::W32,
                dst: Reg::R0,
                src,
            });
            program.push(Insn::Exit);
        }
        run(&program) == 1
    };
    for cond in [Eq, Ne, Set, Gt, Ge, Lt, Le, SGt, SGe, SLt, SLe] {
        for width in WIDTHS {
            for dst in REGS {
                for a in VALUES {
                    for imm in IMMS {
                        let insn = Insn::Jump {
                            cond,
                            width,
                            dst,
                            src: Operand::Imm(imm),
                            off: 2,
                        };
                        let expected = eval::compare(cond, width, a, imm as i64 as u64);
                        assert_eq!(taken(dst, a, None, insn), expected, "{insn:?} {a:#x}");
                    }
                    for (src, b) in REGS.into_iter().zip(VALUES).filter(|&(src, _)| src != dst) {
                        let insn = Insn::Jump {
                            cond,
                            width,
                            dst,
                            src: Operand::Reg(src),
                            off: 2,
                        };
                        let expected = eval::compare(cond, width, a, b);
                        assert_eq!(taken(dst, a, Some((src, b)), insn), expected, "{insn:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn casts_between_address_spaces_keep_the_low_half() {
    for value in VALUES {
        for (to, from) in [(0, 1), (1, 0)] {
            for (dst, src) in [(Reg::R0, Reg::R2), (Reg::R9, Reg::R0), (Reg::R2, Reg::R2)] {
                let cast = AddrSpaceCast { to, from };
                let insn = Insn::Cast { cast, dst, src };
                let result = result(dst, value, Some((src, value)), insn);
                assert_eq!(result, u64::from(value as u32), "{insn:?} {value:#x}");
            }
        }
    }
}
