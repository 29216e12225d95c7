//! Allocated objects, a check at a time.

use btf::TypeId;
use isa::ebpf::Reg;
use spec::registry::{Kfunc, KfuncFlags, ProgramTypes};

use super::{Callee, alloc, args, dynptr, graph, irq_flag, iter, map, returns};
use crate::call::meta::CallMeta;
use crate::call::{kptr, lock, reference};
use crate::env::Env;
use crate::env::tests::{Given, refusal};
use crate::state::{
    BtfRef, IterState, IterTrust, MapRef, RegKind, RegState, StackObject, StackObjectKind,
    TypeFlags, TypeRef,
};

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
        let failed = &env.forked.last().expect("a fork").state;
        let result = failed.reg(Reg::R0).num;
        assert_eq!((result.smin, result.smax), (-4095, -1));
        assert_eq!((result.s32_min, result.s32_max), (-4095, -1));
        assert_eq!(failed.reg(Reg::R3).kind, RegKind::NotInit);
        assert_eq!(failed.reg(Reg::R6).num.as_const(), Some(8));
    });
}

/// Runs a check of a kfunc that returns a `u64` and has a parameter of that type.
fn check_callee(flags: KfuncFlags, check: impl FnOnce(&mut Env<'_>, &Callee<'_>)) {
    let kfunc = Kfunc {
        name: "bpf_test".into(),
        btf_id: 1,
        flags,
        special: None,
        program_types: ProgramTypes::default(),
        exceptions: Vec::new(),
    };
    Given::program(EXIT).with_types().check(|env| {
        let callee = Callee {
            kfunc: &kfunc,
            btf: env.input.vmlinux.expect("types"),
            of: BtfRef::Vmlinux,
            params: vec![(TypeId(1), b"count".to_vec())],
            returns: TypeId(1),
        };
        check(env, &callee);
    });
}

#[test]
fn an_argument_is_a_number() {
    check_callee(KfuncFlags::default(), |env, callee| {
        env.set(Reg::R1, RegState::constant(3));
        args::check_kfunc_args(env, callee).unwrap();
        env.point(Reg::R1, RegKind::Ctx);
        let (_, message) = refusal(args::check_kfunc_args(env, callee));
        assert_eq!(message, "R1 is not a scalar");
    });
}

#[test]
fn a_result_is_of_the_type_that_is_returned() {
    check_callee(KfuncFlags::default(), |env, callee| {
        env.point(Reg::R0, RegKind::Ctx);
        returns::set_result(env, callee, &CallMeta::default()).unwrap();
        assert!(env.reg(Reg::R0).is_scalar());
    });
    check_callee(KfuncFlags::ACQUIRE, |env, callee| {
        let (_, message) = refusal(returns::set_result(env, callee, &CallMeta::default()));
        assert_eq!(
            message,
            "acquire kernel function does not return PTR_TO_BTF_ID"
        );
    });
}

#[test]
fn objects_of_calls_are_on_the_stack() {
    check_callee(KfuncFlags::default(), |env, callee| {
        env.set(Reg::R1, RegState::constant(0));
        let mut meta = CallMeta::default();
        let (_, message) = refusal(iter::check_iter(env, callee, 0, &mut meta));
        assert_eq!(message, "arg#0 expected pointer to an iterator on stack");
        refusal(dynptr::check_kfunc_dynptr(env, callee, 0, &mut meta));
        refusal(irq_flag::check_irq_flag(env, callee, 0));
    });
}

#[test]
fn a_map_is_one_of_the_program() {
    Given::program(EXIT).check(|env| {
        let mut meta = CallMeta::default();
        env.set(Reg::R1, RegState::UNKNOWN);
        let (_, message) = refusal(map::check_const_map(env, 0, &mut meta));
        assert_eq!(message, "pointer in R1 isn't map pointer");
        let map = MapRef(0);
        env.point(Reg::R1, RegKind::MapPtr { map, uid: 2 });
        map::check_const_map(env, 0, &mut meta).unwrap();
        assert_eq!(meta.map, Some((map, 2)));
    });
}

#[test]
fn an_object_is_owned_or_borrowed() {
    Given::program(EXIT).check(|env| {
        alloc::check_referenced(env, &object(TypeFlags::NONE, 1)).unwrap();
        let (_, message) = refusal(alloc::check_referenced(env, &object(TypeFlags::NONE, 0)));
        assert_eq!(message, "allocated object must be referenced");
        env.set(Reg::R1, RegState::UNKNOWN);
        let mut meta = CallMeta::default();
        let (_, message) = refusal(alloc::check_refcounted(env, 0, &mut meta));
        assert_eq!(message, "arg#0 is neither owning or non-owning ref");
    });
}

#[test]
fn an_iterator_under_rcu_is_lost_with_it() {
    Given::program(EXIT).check(|env| {
        let kind = StackObjectKind::Iter {
            ty: TypeRef::vmlinux(1),
            slots: 1,
            state: IterState::Active,
            depth: 0,
            trust: IterTrust::Rcu,
        };
        env.frame_mut().grow_stack(8);
        let object = StackObject {
            kind,
            first_slot: 0,
            id: 0,
            ref_obj_id: 1,
        };
        crate::call::stack_slots::create(env, 0, object);
        let meta = CallMeta {
            iter: Some((0, 0)),
            ..CallMeta::default()
        };
        let flags = |env: &Env<'_>| iter::result_flags(&env.state, &meta);
        assert_eq!(flags(env), TypeFlags::MEM_RCU);
        iter::leave_rcu(&mut env.state);
        assert_eq!(flags(env), TypeFlags::PTR_TRUSTED);
    });
}
