//! The evaluator against recorded results of Linux.

use beebox_isa::ebpf::{Insn, Operand, RawInsn, eval};

const ANSWERS: &str = include_str!("linux-6.18/results.txt");

fn insn(hex: &str) -> Insn {
    let bits = u64::from_str_radix(hex, 16).expect("a slot in hexadecimal");
    Insn::decode_one(RawInsn::from_le_bytes(bits.to_be_bytes()), None)
}

/// `r9` after the instruction.
fn computed(insn: Insn, dst: u64, src: u64) -> u64 {
    let second = |operand| match operand {
        Operand::Imm(value) => eval::imm(value),
        Operand::Reg(_) => src,
    };
    match insn {
        Insn::Alu { op, width, src, .. } => eval::alu(op, width, dst, second(src)),
        Insn::Neg { width, .. } => eval::neg(width, dst),
        Insn::MovSx { width, from, .. } => eval::mov_sx(width, from, src),
        Insn::Endian { order, size, .. } => eval::endian(order, size, dst),
        Insn::Jump {
            cond, width, src, ..
        } => eval::compare(cond, width, dst, second(src)).into(),
        other => panic!("{other:?} computes nothing"),
    }
}

#[oracle::test]
fn operations_match_linux() {
    let mut seen = 0;
    for line in ANSWERS.lines().filter(|line| !line.starts_with('#')) {
        let (question, answer) = line.split_once(" -> ").expect("an answer");
        let words: Vec<&str> = question.split(' ').collect();
        let numbers = |words: &[&str]| -> Vec<u64> {
            words
                .iter()
                .map(|w| u64::from_str_radix(w, 16).expect("a number"))
                .collect()
        };
        let given = numbers(&words[2..]);
        let expected = numbers(&answer.split(' ').collect::<Vec<_>>());
        let insn = insn(words[1]);
        match insn {
            Insn::Atomic { op, size, .. } => {
                let [memory, src, r0] = given[..] else {
                    panic!("{line}")
                };
                let old = eval::zero_extend(size, memory);
                let new = eval::atomic(op, size, memory, src, r0);
                let above = if size.bytes() == 8 {
                    0
                } else {
                    memory >> 32 << 32
                };
                let src = if op.fetches_into_src() { old } else { src };
                let r0 = if op.fetches_into_r0() { old } else { r0 };
                assert_eq!([above | new, src, r0][..], expected[..], "{line}");
            }
            _ => assert_eq!(
                computed(insn, given[0], given[1]),
                expected[0],
                "{insn}: {line}"
            ),
        }
        seen += 1;
    }
    assert!(seen > 3_000, "{seen}");
}

#[oracle::test]
fn edge_cases_of_division_and_shift() {
    use beebox_isa::ebpf::{AluOp::*, Width::*};
    const MIN: u64 = i64::MIN as u64;
    const MIN32: u64 = i32::MIN as u32 as u64;
    let upper = 0xdead_beef_0000_0000;
    assert_eq!(eval::alu(Div, W64, 7, 0), 0);
    assert_eq!(eval::alu(SDiv, W64, MIN, u64::MAX), MIN);
    assert_eq!(eval::alu(SMod, W64, MIN, u64::MAX), 0);
    assert_eq!(eval::alu(SDiv, W32, upper | MIN32, u64::MAX), MIN32);
    assert_eq!(eval::alu(SMod, W32, upper | MIN32, u64::MAX), 0);
    assert_eq!(eval::alu(Mod, W32, upper | 7, upper), 7);
    assert_eq!(eval::alu(Mod, W64, upper | 7, 0), upper | 7);
    assert_eq!(eval::alu(SMod, W64, -7i64 as u64, 3), -1i64 as u64);
    assert_eq!(eval::alu(Lsh, W32, 1, 33), 2);
    assert_eq!(eval::alu(Arsh, W64, MIN, 127), u64::MAX);
}
