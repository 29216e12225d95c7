//! Calls, a check at a time.

use btf::fields::FieldKind;
use isa::ebpf::{Callee, Reg};
use spec::callback::CallbackKind;
use spec::maps::MapKind;
use spec::registry::{ArgBase, ArgType};

use super::dynptr::{self, Usage};
use super::meta::CallMeta;
use super::stack_slots::{self, Place};
use super::{
    args, callback, check_call, compat, constant, field, helper, leak, lock, prototype, reference,
    returns, subprog,
};
use crate::Errno;
use crate::env::Outcome;
use crate::env::tests::{Given, refusal};
use crate::state::{
    DynptrKind, Frame, LockOwner, MapRef, Reference, ReferenceKind, RegKind, RegState, Section,
    SlotKind, State,
};

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
        let fork = env.forked.last().expect("a fork");
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
        let (_, message) = refusal(leak::check_resource_leak(
            env,
            false,
            true,
            leak::LeakCheck::TailCall,
        ));
        assert_eq!(message, "tail_call would lead to reference leak");
        assert!(
            env.text()
                .starts_with("Unreleased reference id=1 alloc_insn=0")
        );
        assert!(reference::release(env, id));
        assert!(!matches!(env.reg(Reg::R1).kind, RegKind::Socket));
        leak::check_resource_leak(env, false, true, leak::LeakCheck::TailCall).unwrap();
    });
}

#[test]
fn locks_are_released_inside_out() {
    let mut state = State::new(Frame::new(-1, 0, 0), 0, false);
    let owner = LockOwner::Map(MapRef(0));
    let kind = ReferenceKind::Lock;
    for id in [1, 2] {
        let lock = Reference {
            kind,
            id,
            insn_idx: 0,
            owner,
            callback: None,
        };
        reference::acquire_lock(&mut state, lock);
    }
    assert!(reference::release_lock(&mut state, kind, 2, owner));
    assert_eq!((state.active_locks, state.active_lock_id), (1, 1));
    assert!(!reference::release_lock(&mut state, kind, 2, owner));
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

#[test]
fn a_map_takes_the_helpers_of_its_kind() {
    Given::program(EXIT).check(|env| {
        let registry = env.input.registry;
        let proto = |id| registry.helper(&env.input.context, id).unwrap();
        let (lookup, other) = (proto(1), proto(8));
        let map = Some(MapRef(0));
        compat::check_map_func_compatibility(env, lookup, map).unwrap();
        compat::check_map_func_compatibility(env, other, None).unwrap();
        let checked = compat::check_map_func_compatibility(env, other, map);
        let (errno, message) = refusal(checked);
        assert_eq!(errno, Errno::EINVAL);
        assert_eq!(
            message,
            "cannot pass map_type 2 into func bpf_get_smp_processor_id#8"
        );
    });
}

#[test]
fn a_result_is_what_the_prototype_says() {
    Given::program(EXIT).check(|env| {
        let lookup = env.input.registry.helper(&env.input.context, 1).unwrap();
        let mut meta = CallMeta {
            map: Some((MapRef(0), 3)),
            ..CallMeta::default()
        };
        returns::set_result(env, lookup, &meta).unwrap();
        let kind = RegKind::MapValue {
            map: MapRef(0),
            uid: 3,
        };
        assert_eq!(env.reg(Reg::R0).kind, kind);
        assert!(env.reg(Reg::R0).may_be_null() && env.reg(Reg::R0).id != 0);
        meta.const_key = Some(1);
        returns::set_result(env, lookup, &meta).unwrap();
        assert!(!env.reg(Reg::R0).may_be_null(), "the array has that key");
    });
}

#[test]
fn a_field_is_in_a_value_with_types() {
    Given::program(EXIT).check(|env| {
        let kind = RegKind::MapValue {
            map: MapRef(0),
            uid: 0,
        };
        env.point(Reg::R1, kind);
        let (_, message) = refusal(field::check_in_value(env, Reg::R1, FieldKind::Timer));
        assert_eq!(
            message,
            "map 'array' has to have BTF in order to use bpf_timer"
        );
    });
}

#[test]
fn a_call_releases_what_is_held() {
    Given::program(EXIT).check(|env| {
        let mut meta = CallMeta::default();
        assert!(meta.release_reference(env), "it releases nothing");
        meta.release = Some(Reg::R1);
        env.set(Reg::R1, RegState::constant(0));
        assert!(meta.release_reference(env), "null holds nothing");
        let mut socket = RegState::pointer(RegKind::Socket, Default::default());
        socket.ref_obj_id = reference::acquire(env);
        env.set(Reg::R1, socket);
        assert!(meta.release_reference(env) && !meta.release_reference(env));
    });
}

#[test]
fn a_chain_of_calls_has_eight_frames() {
    Given::program(EXIT).check(|env| {
        subprog::check_frame_limit(env).unwrap();
        env.state.curframe = 7;
        let (errno, message) = refusal(subprog::check_frame_limit(env));
        assert_eq!(errno, Errno::E2BIG);
        assert_eq!(message, "the call stack of 9 frames is too deep");
    });
}

#[test]
fn functions_without_types_have_no_prototype() {
    Given::program(SUBPROG).check(|env| {
        assert!(prototype::arguments(env.input, 1).is_none());
        assert!(!prototype::returns_void(env.input, 1));
    });
}

#[test]
fn a_section_has_its_name() {
    Given::program(EXIT).check(|env| {
        assert_eq!(helper::section(&env.state), None);
        stack_slots::acquire_irq_state(env);
        assert_eq!(helper::section(&env.state), Some(Section::Irq));
    });
}

/// Makes r1 a pointer to the stack at an offset.
fn point_at_stack(env: &mut crate::env::Env<'_>, off: i32) {
    *env.reg_mut(Reg::R1) = *env.reg(Reg::R10);
    env.reg_mut(Reg::R1).off = off;
}

#[test]
fn objects_begin_at_multiples_of_slots() {
    Given::program(EXIT).check(|env| {
        env.frame_mut().grow_stack(32);
        for (off, slots, place) in [
            (-32, 2, Place::At(0, 3)),
            (-16, 2, Place::At(0, 1)),
            (-8, 2, Place::Misplaced),
            (-8, 1, Place::At(0, 0)),
            (0, 1, Place::At(0, 0)),
            (8, 1, Place::Misplaced),
            (-12, 1, Place::Misplaced),
            (-40, 1, Place::Unallocated),
        ] {
            point_at_stack(env, off);
            let found = stack_slots::place_of(env, Reg::R1, "iter", slots);
            assert_eq!(found, place, "{slots} slots at {off}");
        }
        env.reg_mut(Reg::R1).num = crate::domain::Scalar::UNKNOWN;
        let found = stack_slots::place_of(env, Reg::R1, "iter", 1);
        assert_eq!(found, Place::Misplaced);
        assert!(
            env.text()
                .ends_with("iter has to be at a constant offset\n")
        );
    });
}

#[test]
fn irq_flags_are_restored_inside_out() {
    Given::program(EXIT).check(|env| {
        let outer = stack_slots::acquire_irq_state(env);
        let inner = stack_slots::acquire_irq_state(env);
        assert_eq!(env.state.active_irq_id, inner);
        assert!(!stack_slots::release_irq_state(&mut env.state, outer));
        assert!(stack_slots::release_irq_state(&mut env.state, inner));
        assert_eq!(env.state.active_irq_id, outer);
        assert!(stack_slots::release_irq_state(&mut env.state, outer));
        assert_eq!((env.state.active_irq_id, env.state.refs.len()), (0, 0));
    });
}

#[test]
fn a_store_destroys_a_dynptr_with_its_slices() {
    Given::program(EXIT).check(|env| {
        point_at_stack(env, -16);
        let kind = DynptrKind::Local;
        dynptr::check_dynptr(env, Reg::R1, Usage::Makes { kind, clone_of: 0 }).unwrap();
        let made = dynptr::initialized(env, Reg::R1).expect("a dynptr");
        let slice = RegKind::Mem {
            size: 8,
            dynptr_id: made.id,
        };
        env.point(Reg::R6, slice);
        dynptr::overwrite(env, 0, 0).unwrap();
        assert_eq!(dynptr::initialized(env, Reg::R1), None);
        assert!(env.reg(Reg::R6).is_scalar());
        assert_eq!(env.frame().stack[1].kinds, [SlotKind::Invalid; 8]);
    });
}

#[test]
fn a_dynptr_with_a_reference_is_released_with_its_clones() {
    Given::program(EXIT).check(|env| {
        let kind = DynptrKind::Ringbuf;
        point_at_stack(env, -32);
        dynptr::check_dynptr(env, Reg::R1, Usage::Makes { kind, clone_of: 0 }).unwrap();
        let clone_of = env.state.refs[0].id;
        point_at_stack(env, -16);
        dynptr::check_dynptr(env, Reg::R1, Usage::Makes { kind, clone_of }).unwrap();
        let (_, message) = refusal(dynptr::overwrite(env, 0, 1));
        assert_eq!(message, "cannot overwrite referenced dynptr");
        dynptr::release(env, Reg::R1).unwrap();
        assert!(env.state.refs.is_empty());
        assert_eq!(env.frame().stack.objects().count(), 0);
    });
}
