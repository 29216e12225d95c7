//! Jumps and exits, a check at a time.

use isa::ebpf::{Cond, Insn, Operand, Reg, Width};

use super::{check_flow, cond, linked, null, packet};
use crate::Errno;
use crate::domain::Scalar;
use crate::env::Outcome;
use crate::env::tests::{Given, refusal};
use crate::state::{LinkedRegs, MapRef, RegKind, RegState, TypeFlags};

const COMPARE: &str = "if r1 > 5 goto +1; r0 = 0; r0 = 1; exit";

#[test]
fn an_open_comparison_forks() {
    Given::program(COMPARE).check(|env| {
        env.bound(Reg::R1, 10);
        let (cond, src) = (Cond::Gt, Operand::Imm(5));
        let next = cond::check_cond_jmp_op(env, cond, Width::W64, Reg::R1, src, 1);
        assert_eq!(next.unwrap(), Outcome::Next);
        assert_eq!(env.reg(Reg::R1).num.umax, 5);
        let fork = env.forked.last().expect("a fork");
        assert_eq!(fork.state.reg(Reg::R1).num.umin, 6);
    });
}

#[test]
fn a_decided_comparison_is_followed_alone() {
    Given::program(COMPARE).check(|env| {
        env.set(Reg::R1, RegState::constant(7));
        let (cond, src) = (Cond::Gt, Operand::Imm(5));
        let next = cond::check_cond_jmp_op(env, cond, Width::W64, Reg::R1, src, 1);
        assert_eq!(next.unwrap(), Outcome::Jump(2));
        assert!(env.forked.is_empty());
    });
}

#[test]
fn may_goto_counts_the_way_out() {
    Given::program("may_goto +1; r0 = 0; r0 = 1; exit").check(|env| {
        let next = check_flow(env, Insn::MayGoto { off: 1 });
        assert_eq!(next.unwrap(), Outcome::Jump(2));
        let fork = env.forked.last().expect("a fork");
        assert_eq!(fork.state.may_goto_depth, env.state.may_goto_depth + 1);
    });
}

#[test]
fn an_exit_returns_a_number() {
    Given::program("exit").check(|env| {
        let (errno, message) = refusal(check_flow(env, Insn::Exit));
        assert_eq!((errno, &*message), (Errno::EACCES, "R0 !read_ok"));
        env.set(Reg::R0, RegState::constant(2));
        assert_eq!(check_flow(env, Insn::Exit).unwrap(), Outcome::Exit);
    });
}

#[test]
fn live_copies_learn_of_each_other() {
    Given::program("r0 = r1; r0 += r2; exit").check(|env| {
        let mut copy = RegState::UNKNOWN;
        copy.id = 1;
        for reg in [Reg::R1, Reg::R2, Reg::R3] {
            env.set(reg, copy);
        }
        let mut found = LinkedRegs::default();
        linked::collect(env.analysis, env.input.rules, &mut env.state, 1, &mut found);
        env.reg_mut(Reg::R1).num = Scalar::up_to(9, env.input.rules);
        linked::sync(
            &mut env.check.state,
            env.check.input.rules,
            Reg::R1.index(),
            found,
        );
        assert_eq!(env.reg(Reg::R2).num.umax, 9);
        assert!(env.reg(Reg::R3).num.is_unknown(), "r3 is dead");
    });
}

#[test]
fn a_comparison_with_null_is_for_all_of_an_identity() {
    Given::program("r0 = 0; exit").check(|env| {
        let kind = RegKind::MapValue {
            map: MapRef(0),
            uid: 0,
        };
        let mut value = RegState::pointer(kind, TypeFlags::PTR_MAYBE_NULL);
        value.id = 1;
        for is_null in [true, false] {
            env.set(Reg::R1, value);
            env.set(Reg::R2, value);
            null::mark_ptr_or_null_regs(env.input, &mut env.state, Reg::R1, is_null);
            assert_eq!(env.reg(Reg::R2).is_null(), is_null);
            assert_eq!(env.reg(Reg::R2).flags, TypeFlags::NONE);
        }
    });
}

#[test]
fn a_comparison_with_the_end_proves_what_is_before() {
    Given::program("r0 = 0; exit").check(|env| {
        env.point(Reg::R1, RegKind::Packet { range: 0 });
        env.reg_mut(Reg::R1).off = 14;
        env.point(Reg::R2, RegKind::PacketEnd);
        env.point(Reg::R3, RegKind::Packet { range: 0 });
        let mut taken = env.state.clone();
        let is_packet = packet::refine(
            Cond::Gt,
            (Reg::R1, Reg::R2),
            (&mut env.state, &mut taken),
            spec::behaviour::Behaviours::LINUX_6_18,
        );
        assert!(is_packet);
        assert_eq!(env.reg(Reg::R3).kind, RegKind::Packet { range: 14 });
        assert_eq!(taken.reg(Reg::R3).kind, RegKind::Packet { range: 0 });
    });
}
