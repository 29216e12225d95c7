//! Every operation against `isa`'s `eval`, in every place an operand can have.

use isa::ebpf::{AluOp, ByteOrder, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width, eval};
use packet::{Metadata, Packet};
use spec::SplitMix;
use vm::{Machine, Outcome, Surroundings};

use crate::compile::Code;

const REGS: [Reg; 3] = [Reg::R0, Reg::R2, Reg::R9];
const VALUES: [u64; 9] = [
    0,
    1,
    u64::MAX,
    i64::MIN as u64,
    i64::MAX as u64,
    0x8000_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1234_5678_9abc_def0,
];
const IMMS: [i32; 6] = [0, 1, -1, i32::MIN, i32::MAX, 33];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// Runs a program that reads nothing but its registers and stack.
fn run(insns: &[Insn]) -> u64 {
    let code = Code::compile_trusted(insns).expect("the interpreter performs it");
    let mut machine = Machine::new();
    let packet = Packet::whole(&[], &Metadata::UNKNOWN);
    let mut world = Surroundings {
        packet: &packet,
        random: &mut SplitMix::new(1),
    };
    let m = machine.enter();
    // SAFETY: the tests' programs access their own stack only, within bounds.
    match unsafe { code.run(m, 0, &[], &mut world, 100) } {
        Outcome::Returned(value) => value,
        Outcome::BudgetExhausted => panic!("a test's program does not loop"),
    }
}

fn set(dst: Reg, value: u64) -> [Insn; 2] {
    [
        Insn::LoadImm64 {
            dst,
            imm: Imm64::Value(Value64::new(value)),
        },
        Insn::Imm64High,
    ]
}

/// `dst` and `src` set, then the instruction, then `dst` returned.
fn result(dst: Reg, a: u64, src: Option<(Reg, u64)>, insn: Insn) -> u64 {
    let mut program = Vec::from(set(dst, a));
    if let Some((src, b)) = src {
        program.extend(set(src, b));
    }
    program.push(insn);
    program.push(Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: Reg::R0,
        src: Operand::Reg(dst),
    });
    program.push(Insn::Exit);
    run(&program)
}

#[test]
fn arithmetic_is_evals_in_every_place() {
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
fn unary_operations_are_evals_in_every_place() {
    for (index, value) in VALUES.into_iter().enumerate() {
        let (dst, src) = (REGS[index % 3], REGS[(index + 1) % 3]);
        for width in WIDTHS {
            let insn = Insn::Neg { width, dst };
            assert_eq!(result(dst, value, None, insn), eval::neg(width, value));
            for from in [Size::B, Size::H, Size::W] {
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
fn branches_go_where_eval_says() {
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
fn memory_keeps_what_it_is_given() {
    for (index, value) in VALUES.into_iter().enumerate() {
        for size in [Size::B, Size::H, Size::W, Size::DW] {
            for signed in [false, true] {
                let (src, dst) = (REGS[index % 3], REGS[(index + 1) % 3]);
                let off = -8 - index as i16;
                let store = Insn::Store {
                    size,
                    base: Reg::R10,
                    off,
                    src: Operand::Reg(src),
                };
                let load = Insn::Load {
                    size,
                    signed,
                    dst,
                    base: Reg::R10,
                    off,
                };
                let mut program = Vec::from(set(src, value));
                program.extend([store, load]);
                program.extend([
                    Insn::Alu {
                        op: AluOp::Mov,
                        width: Width::W64,
                        dst: Reg::R0,
                        src: Operand::Reg(dst),
                    },
                    Insn::Exit,
                ]);
                assert_eq!(
                    run(&program),
                    eval::loaded(size, signed, value),
                    "{load:?} {value:#x}"
                );
            }
        }
    }
}

/// A chain of `n` comparisons in either layout, with `keys`, each returning its
/// position, and what it must return for a value.
fn chain(keys: &[u32], inverted: bool, value: u32) -> (u64, u64) {
    let n = keys.len();
    let mov = |imm: i32| Insn::Alu {
        op: AluOp::Mov,
        width: Width::W32,
        dst: Reg::R0,
        src: Operand::Imm(imm),
    };
    let test = |cond, imm: u32, off| Insn::Jump {
        cond,
        width: Width::W32,
        dst: Reg::R2,
        src: Operand::Imm(imm as i32),
        off,
    };
    let mut program = Vec::from(set(Reg::R2, u64::from(value) | 7 << 32));
    if inverted {
        for (position, &key) in keys.iter().enumerate() {
            program.extend([test(Cond::Ne, key, 2), mov(position as i32), Insn::Exit]);
        }
        program.extend([mov(-1), Insn::Exit]);
    } else {
        for (position, &key) in keys.iter().enumerate() {
            program.push(test(
                Cond::Eq,
                key,
                (n - position - 1 + 2 + 2 * position) as i16,
            ));
        }
        program.extend([mov(-1), Insn::Exit]);
        for position in 0..n {
            program.extend([mov(position as i32), Insn::Exit]);
        }
    }
    let expected = keys.iter().position(|&key| key == value);
    (
        run(&program),
        expected.map_or(u64::from(u32::MAX), |position| position as u64),
    )
}

#[test]
fn chains_of_comparisons_find_the_first_equal_key() {
    let dense: Vec<u32> = (10..30).chain([12, 15]).collect();
    let sparse: Vec<u32> = (1..40).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let edges = vec![0, u32::MAX, 5, 0, u32::MAX - 1, 1];
    for keys in [&dense, &sparse, &edges, &dense[..3].to_vec()] {
        for inverted in [false, true] {
            let probes = keys
                .iter()
                .flat_map(|&key| [key, key.wrapping_add(1), !key]);
            for value in probes {
                let (found, expected) = chain(keys, inverted, value);
                assert_eq!(found, expected, "{keys:?} {value} inverted: {inverted}");
            }
        }
    }
}

#[test]
fn a_chain_entered_in_the_middle_goes_on_from_there() {
    // Value 3 jumps over the first two links of a chain of five equal tests.
    let test = |cond, imm, off| Insn::Jump {
        cond,
        width: Width::W32,
        dst: Reg::R2,
        src: Operand::Imm(imm),
        off,
    };
    let mov = |imm| Insn::Alu {
        op: AluOp::Mov,
        width: Width::W32,
        dst: Reg::R0,
        src: Operand::Imm(imm),
    };
    for (value, expected) in [(1, 9), (2, 1), (3, 9), (4, 1), (5, 0), (6, 1)] {
        let mut program = Vec::from(set(Reg::R2, value));
        program.extend([
            test(Cond::SGt, 2, 3),
            test(Cond::Eq, 2, 5),
            test(Cond::Eq, 3, 4),
            test(Cond::Eq, 1, 7),
            test(Cond::Eq, 4, 2),
            test(Cond::Eq, 6, 1),
            test(Cond::Ne, 5, 4),
            mov(if value == 5 { 0 } else { 1 }),
            Insn::Exit,
            mov(7),
            Insn::Exit,
            mov(9),
            Insn::Exit,
        ]);
        assert_eq!(run(&program), expected, "{value}");
    }
}

#[test]
fn an_endless_loop_is_stopped() {
    let code = Code::compile_trusted(&[Insn::Goto { off: -1 }]).expect("it is a jump");
    let mut machine = Machine::new();
    let packet = Packet::whole(&[], &Metadata::UNKNOWN);
    let mut world = Surroundings {
        packet: &packet,
        random: &mut SplitMix::new(1),
    };
    let m = machine.enter();
    // SAFETY: the program accesses nothing.
    let outcome = unsafe { code.run(m, 0, &[], &mut world, 100) };
    assert_eq!(outcome, Outcome::BudgetExhausted);
}

#[test]
fn what_is_not_performed_is_said() {
    let insns = [Insn::GotoReg { dst: Reg::R1 }, Insn::Exit];
    let unsupported = Code::compile_trusted(&insns)
        .err()
        .expect("no engine jumps there yet");
    assert_eq!((unsupported.slot, unsupported.insn), (0, insns[0]));
}

#[test]
fn a_trusted_program_runs_on_memory() {
    let text = "
        r0 = 0
        r3 = r1
        r3 += r2
    next:
        if r1 >= r3 goto out
        r4 = *(u8 *)(r1 + 0)
        r0 += r4
        *(u8 *)(r1 + 0) = 7
        r1 += 1
        goto next
    out:
        exit
    ";
    let insns = isa::ebpf::assemble(text).expect(text);
    // SAFETY: it accesses the bytes from `r1` up to `r1 + r2` and ends there.
    let trusted = unsafe { vm::Trusted::assume_safe(insns) };
    let lowered = lower::Lowered::from_trusted(trusted).expect(text);
    let code = Code::compile(&lowered).expect(text);
    let (mut machine, mut random) = (Machine::new(), SplitMix::new(1));
    let mut memory = [1, 2, 3, 250];
    let outcome = code.run_memory(&mut machine, &mut memory, &mut random);
    assert_eq!((outcome, memory), (Outcome::Returned(256), [7; 4]));
    let outcome = code.run_memory(&mut machine, &mut [], &mut random);
    assert_eq!(outcome, Outcome::Returned(0));
    for (budget, outcome) in [
        (4, Outcome::Returned(28)),
        (3, Outcome::BudgetExhausted),
        (0, Outcome::BudgetExhausted),
    ] {
        let found = code.run_memory_within(&mut machine, &mut memory, &mut random, budget);
        assert_eq!(found, outcome, "{budget}");
    }
}
