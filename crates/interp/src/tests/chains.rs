//! Chains of comparisons.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Width};

use super::{run, set};

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
fn comparison_chains_find_the_first_equal_key() {
    let dense: Vec<u32> = (10..30).chain([12, 15]).collect();
    let sparse: Vec<u32> = (1..40).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let edges = vec![0, u32::MAX, 5, 0, u32::MAX - 1, 1];
    for keys in [&dense, &sparse, &edges, &dense[..3].to_vec()] {
        for inverted in [false, true] {
            let probes = keys
                .iter()
                .flat_map(|&key| [key, key.wrapping_add(1), !key]);
            for value in probes.step_by(if cfg!(miri) { 25 } else { 1 }) {
                let (found, expected) = chain(keys, inverted, value);
                assert_eq!(found, expected, "{keys:?} {value} inverted: {inverted}");
            }
        }
    }
}

#[test]
fn a_chain_can_be_entered_in_the_middle() {
    // Value 3 skips the first two comparisons of a chain of five.
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
fn a_test_before_a_chain_is_not_paired_with_its_first_test() {
    let test = |cond, imm, off| Insn::Jump {
        cond,
        width: Width::W32,
        dst: Reg::R2,
        src: Operand::Imm(imm),
        off,
    };
    for (value, expected) in [(-2, 1), (0, 1), (7, 1), (9, 0), (22, 1)] {
        let mov = |imm| Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst: Reg::R0,
            src: Operand::Imm(imm),
        };
        let mut program = Vec::from(set(Reg::R2, value as u64));
        program.extend([
            mov(1),
            test(Cond::SGe, 22, 5),
            test(Cond::Eq, -2, 4),
            test(Cond::Eq, 129, 3),
            test(Cond::Eq, 0, 2),
            test(Cond::Eq, 7, 1),
            mov(0),
            Insn::Exit,
        ]);
        assert_eq!(run(&program), expected, "{value}");
    }
}
