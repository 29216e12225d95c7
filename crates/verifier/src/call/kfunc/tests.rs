//! Allocated objects, a check at a time.

use isa::ebpf::Reg;

use super::graph;
use crate::call::{kptr, lock, reference};
use crate::env::tests::Given;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};

const EXIT: &str = "r0 = 0; exit";

/// An object that the program allocated, of type 1 of its BTF.
fn object(flags: TypeFlags, id: u32) -> RegState {
    let kind = RegKind::BtfId {
        ty: TypeRef::program(1),
    };
    let mut object = RegState::pointer(kind, TypeFlags::MEM_ALLOC.with(flags));
    object.ref_obj_id = id;
    object
}

#[test]
fn an_object_that_is_given_away_keeps_pointers_without_reference() {
    Given::program(EXIT).check(|env| {
        let id = reference::acquire(env);
        env.set(Reg::R6, object(TypeFlags::NONE, id));
        env.set(Reg::R7, object(TypeFlags::NONE, id));
        env.set(Reg::R8, object(TypeFlags::NONE, id + 1));
        assert!(graph::give_away(env, id));
        for reg in [Reg::R6, Reg::R7] {
            let reg = env.reg(reg);
            assert!(reg.is_non_owning() && reg.ref_obj_id == 0);
        }
        assert!(!env.reg(Reg::R8).is_non_owning());
        assert!(env.state.refs.is_empty() && !graph::give_away(env, id));
    });
}

#[test]
fn an_object_for_each_cpu_stays_readable_in_a_field() {
    Given::program(EXIT).check(|env| {
        let id = reference::acquire(env);
        env.set(Reg::R6, object(TypeFlags::MEM_PERCPU, id));
        env.set(Reg::R7, object(TypeFlags::NONE, id));
        assert!(kptr::release_source(env, id));
        let flags = TypeFlags::MEM_PERCPU.with(TypeFlags::MEM_RCU);
        assert_eq!(
            (env.reg(Reg::R6).flags, env.reg(Reg::R6).ref_obj_id),
            (flags, 0)
        );
        assert!(env.reg(Reg::R7).is_scalar());
    });
}

#[test]
fn a_resilient_lock_that_is_not_taken_returns_an_error_number() {
    Given::program("r0 = 0; exit").check(|env| {
        env.set(Reg::R3, RegState::constant(7));
        env.set(Reg::R6, RegState::constant(8));
        lock::push_failed_lock(env).unwrap();
        let failed = &env.forked.as_ref().expect("a fork").state;
        let result = failed.reg(Reg::R0).num;
        assert_eq!((result.smin, result.smax), (-4095, -1));
        assert_eq!((result.s32_min, result.s32_max), (-4095, -1));
        assert_eq!(failed.reg(Reg::R3).kind, RegKind::NotInit);
        assert_eq!(failed.reg(Reg::R6).num.as_const(), Some(8));
    });
}
