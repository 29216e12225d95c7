//! Arithmetic, a check at a time.

use isa::ebpf::{AluOp, Operand, Reg, Width};

use super::{bounds, moves, pointer, scalar};
use crate::Errno;
use crate::domain::Scalar;
use crate::env::tests::{Given, refusal};
use crate::log::Sink;
use crate::state::{RegKind, RegState, TypeFlags};

const EXIT: &str = "r0 = 0; exit";

#[test]
fn a_contradiction_is_logged_and_forgotten() {
    Given::program(EXIT).check(|env| {
        let mut num = Scalar::up_to(5, env.input.rules);
        (num.umin, num.umax) = (7, 5);
        bounds::check_bounds(env.input, &mut env.sink, &mut num, "alu").unwrap();
        assert!(num.is_unbounded());
        assert!(env.text().contains("REG INVARIANTS VIOLATION (alu)"));
    });
}

#[test]
fn an_offset_beyond_the_bound_is_refused() {
    let mut log = Sink::new(0);
    log.insn_idx = 3;
    let pointer = RegState::pointer(RegKind::Ctx, TypeFlags::NONE);
    let mut check = |offset: i64| {
        pointer::check_sane_offset(&mut log, &RegState::constant(offset as u64), &pointer)
    };
    let bound = 1 << 29;
    assert!(check(bound - 1).is_ok() && check(1 - bound).is_ok());
    for offset in [bound, -bound] {
        let words = format!("math between ctx pointer and {offset} is not allowed");
        assert_eq!(refusal(check(offset)), (Errno::EINVAL, words));
    }
}

#[test]
fn a_copy_shares_its_identity() {
    Given::program(EXIT).check(|env| {
        env.set(Reg::R1, RegState::UNKNOWN);
        moves::check_mov(env, Width::W64, Reg::R2, Operand::Reg(Reg::R1)).unwrap();
        assert_ne!(env.reg(Reg::R1).id, 0);
        assert_eq!(env.reg(Reg::R1), env.reg(Reg::R2));
        // The lower half of a wide value is another value.
        moves::check_mov(env, Width::W32, Reg::R3, Operand::Reg(Reg::R1)).unwrap();
        assert_eq!(env.reg(Reg::R3).id, 0);
    });
}

#[test]
fn a_mask_of_0_and_minus_1_forks() {
    Given::program(EXIT).check(|env| {
        let mut sign = RegState::UNKNOWN;
        (sign.num.smin, sign.num.smax) = (-1, 0);
        env.set(Reg::R1, sign);
        let (op, src) = (AluOp::And, Operand::Imm(6));
        let six = RegState::constant(6).num;
        scalar::adjust_scalar_min_max_vals(env, op, Width::W64, Reg::R1, src, &six).unwrap();
        assert_eq!(env.reg(Reg::R1).num.as_const(), Some(6));
        let fork = env.forked.last().expect("a fork");
        assert!(fork.state.reg(Reg::R1).is_null());
    });
}

#[test]
fn pointers_to_packets_move_by_bounded_numbers() {
    Given::program(EXIT).check(|env| {
        let packet = RegKind::Packet { range: 20 };
        for (offset, id) in [(RegState::constant(4), 0), (RegState::UNKNOWN, 1)] {
            env.point(Reg::R1, packet);
            let mut offset = offset;
            if id != 0 {
                offset.num = Scalar::up_to(100, env.input.rules);
            }
            let pointer = *env.reg(Reg::R1);
            let operands = (&pointer, &offset);
            let regs = (Reg::R1, Operand::Reg(Reg::R2));
            pointer::adjust_ptr_min_max_vals(env, AluOp::Add, Width::W64, regs, operands, false)
                .unwrap();
            assert_eq!(env.reg(Reg::R1).id, id);
        }
        assert_eq!(env.reg(Reg::R1).kind, RegKind::Packet { range: 0 });
    });
}

#[test]
fn a_pointer_has_no_32_bit_arithmetic() {
    Given::program(EXIT).unprivileged().check(|env| {
        let pointer = *env.reg(Reg::R10);
        let one = RegState::constant(1);
        let regs = (Reg::R10, Operand::Imm(1));
        let (op, width) = (AluOp::Add, Width::W32);
        let checked =
            pointer::adjust_ptr_min_max_vals(env, op, width, regs, (&pointer, &one), false);
        let (errno, message) = refusal(checked);
        assert_eq!(errno, Errno::EACCES);
        assert_eq!(message, "R10 32-bit pointer arithmetic prohibited");
    });
}
