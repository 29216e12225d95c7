//! Calls, a check at a time.

use isa::ebpf::{Callee, Reg};
use spec::callback::CallbackKind;
use spec::maps::MapKind;
use spec::registry::{ArgBase, ArgType};

use super::kfunc::graph;
use super::{args, callback, check_call, constant, kptr, leak, lock, reference};
use crate::Errno;
use crate::env::Outcome;
use crate::env::tests::{Given, refusal};
use crate::state::{LockOwner, MapRef, ReferenceKind, RegKind, RegState, TypeFlags, TypeRef};

const EXIT: &str = "r0 = 0; exit";
const SUBPROG: &str = "call pc+1; exit; r0 = 0; exit";

#[test]
fn an_argument_is_of_a_kind() {
    Given::program(EXIT).check(|env| {
        env.point(Reg::R1, RegKind::Ctx);
        let arg = ArgType::from(ArgBase::PtrToCtx);
        args::check_reg_type(env, Reg::R1, arg, None, None).unwrap();
        let arg = ArgType::from(ArgBase::ConstMapPtr);
        let (errno, message) = refusal(args::check_reg_type(env, Reg::R1, arg, None, None));
        assert_eq!(errno, Errno::EACCES);
        assert_eq!(message, "R1 type=ctx expected=map_ptr");
    });
}

#[test]
fn a_helper_leaves_its_result_and_no_arguments() {
    Given::program("call 8; exit").check(|env| {
        env.set(Reg::R1, RegState::UNKNOWN);
        let next = check_call(env, Callee::Helper(8));
        assert_eq!(next.unwrap(), Outcome::Next);
        assert!(env.reg(Reg::R0).is_scalar());
        assert_eq!(env.reg(Reg::R1).kind, RegKind::NotInit);
        let (errno, message) = refusal(check_call(env, Callee::Helper(7)));
        assert_eq!(errno, Errno::EINVAL);
        assert!(message.starts_with("program of this type cannot use helper"));
    });
}

#[test]
fn a_map_takes_some_helpers() {
    Given::program("call 1; exit").check(|env| {
        let kind = RegKind::MapPtr {
            map: MapRef(0),
            uid: 0,
        };
        assert_eq!(env.input.maps[MapRef(0)].kind(), Some(MapKind::Array));
        env.point(Reg::R1, kind);
        *env.reg_mut(Reg::R2) = *env.reg(Reg::R10);
        env.reg_mut(Reg::R2).off = -4;
        check_call(env, Callee::Helper(1)).unwrap();
        let result = env.reg(Reg::R0);
        assert!(matches!(result.kind, RegKind::MapValue { .. }) && result.may_be_null());
    });
}

#[test]
fn a_static_function_is_entered() {
    Given::program(SUBPROG).check(|env| {
        env.set(Reg::R6, RegState::UNKNOWN);
        let next = check_call(env, Callee::Local(1));
        assert_eq!(next.unwrap(), Outcome::Call(2));
        assert_eq!(env.state.curframe, 1);
        assert_eq!(env.reg(Reg::R6).kind, RegKind::NotInit);
    });
}

#[test]
fn a_callback_is_entered_on_a_path_of_its_own() {
    Given::program(SUBPROG).check(|env| {
        env.set(Reg::R1, RegState::constant(3));
        env.set(Reg::R4, RegState::constant(0));
        callback::push(env, 1, CallbackKind::Loop).unwrap();
        assert_eq!(env.state.curframe, 0);
        let fork = env.forked.as_ref().expect("a fork");
        assert_eq!(fork.state.curframe, 1);
        assert_eq!(fork.state.callback_unroll_depth, 1);
    });
}

#[test]
fn a_reference_is_released_with_what_holds_it() {
    Given::program(EXIT).check(|env| {
        let id = reference::acquire(env);
        env.point(Reg::R1, RegKind::Socket);
        env.reg_mut(Reg::R1).ref_obj_id = id;
        let (_, message) = refusal(leak::check_resource_leak(env, false, true, "BPF_EXIT"));
        assert_eq!(message, "BPF_EXIT would lead to reference leak");
        assert!(
            env.text()
                .starts_with("Unreleased reference id=1 alloc_insn=0")
        );
        assert!(reference::release(env, id));
        assert!(!matches!(env.reg(Reg::R1).kind, RegKind::Socket));
        leak::check_resource_leak(env, false, true, "BPF_EXIT").unwrap();
    });
}

#[test]
fn locks_are_released_inside_out() {
    Given::program(EXIT).check(|env| {
        let owner = LockOwner::Map(MapRef(0));
        let kind = ReferenceKind::Lock;
        reference::acquire_lock(env, kind, 1, owner);
        reference::acquire_lock(env, kind, 2, owner);
        assert!(reference::release_lock(env, kind, 2, owner));
        assert_eq!((env.state.active_locks, env.state.active_lock_id), (1, 1));
        assert!(!reference::release_lock(env, kind, 2, owner));
    });
}

#[test]
fn a_lock_is_in_a_value_with_types() {
    Given::program(EXIT).check(|env| {
        let map = MapRef(0);
        env.point(Reg::R1, RegKind::MapValue { map, uid: 0 });
        let (_, message) = refusal(lock::check_spin_lock(env, Reg::R1, true));
        assert_eq!(
            message,
            "map 'array' has to have BTF in order to use bpf_spin_lock"
        );
    });
}

#[test]
fn a_key_on_the_stack_is_known() {
    Given::program("*(u32 *)(r10 - 8) = 7; r0 = 0; exit").check(|env| {
        let insn = env.input.insns[0];
        crate::mem::check_mem_insn(env, insn).unwrap();
        *env.reg_mut(Reg::R2) = *env.reg(Reg::R10);
        env.reg_mut(Reg::R2).off = -8;
        assert_eq!(constant::map_key(env, Reg::R2, 4).unwrap(), Some(7));
        assert_eq!(constant::map_key(env, Reg::R2, 8).unwrap(), None);
    });
}

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
        lock::fork_failed(env).unwrap();
        let failed = &env.forked.as_ref().expect("a fork").state;
        let result = failed.reg(Reg::R0).num;
        assert_eq!((result.smin, result.smax), (-4095, -1));
        assert_eq!((result.s32_min, result.s32_max), (-4095, -1));
        assert_eq!(failed.reg(Reg::R3).kind, RegKind::NotInit);
        assert_eq!(failed.reg(Reg::R6).num.as_const(), Some(8));
    });
}
