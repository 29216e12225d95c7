//! Accesses to memory, a check at a time.

use btf::TypeId;
use btf::fields::{FieldKind, SpecialField};
use isa::ebpf::Reg;
use spec::behaviour::Behaviours;

use super::helper_mem::check_helper_mem;
use super::{
    Access, MemAccess, align, alloc, check_mem_access, check_mem_insn, context, context_btf, kptr,
    map_value, object, packet, region, registers, socket,
};
use crate::Errno;
use crate::env::Env;
use crate::env::tests::{Given, refusal};
use crate::log::Sink;
use crate::state::{MapRef, RegKind, RegState, TypeFlags, TypeRef};

const EXIT: &str = "r0 = 0; exit";

fn reads(ptr: Reg, off: i32, size: u32) -> MemAccess {
    MemAccess {
        value: Some(Reg::R0),
        ..MemAccess::new(ptr, off, size, Access::Read)
    }
}

fn plain(kind: RegKind) -> RegState {
    RegState::pointer(kind, TypeFlags::NONE)
}

/// The words of a refusal of a check of one register, with the log.
fn words(check: impl FnOnce(&mut Sink<'_>) -> crate::Result<()>) -> (String, String) {
    let mut log = Sink::new(1);
    let (_, message) = refusal(check(&mut log));
    (message, log.into_text())
}

#[test]
fn the_stack_is_accessed_aligned() {
    Given::program(EXIT).check(|env| {
        let stack = *env.reg(Reg::R10);
        let mut check =
            |off| align::check_ptr_alignment(env.input, &mut env.sink, &stack, off, 8, false);
        check(-16).unwrap();
        let (_, message) = refusal(check(-12));
        assert_eq!(message, "misaligned stack access off 0+0+-12 size 8");
    });
}

#[test]
fn the_context_has_no_atomics() {
    Given::program("lock *(u64 *)(r1 + 0) += r2; r0 = 0; exit").check(|env| {
        env.point(Reg::R1, RegKind::Ctx);
        env.set(Reg::R2, RegState::UNKNOWN);
        let insn = env.input.insns[0];
        let (_, message) = refusal(check_mem_insn(env, insn));
        assert_eq!(message, "BPF_ATOMIC stores into R1 ctx is not allowed");
    });
}

#[test]
fn a_field_of_the_context_has_its_kind() {
    Given::program(EXIT).check(|env| {
        env.point(Reg::R1, RegKind::Ctx);
        context::check_ctx_access(env, reads(Reg::R1, 0, 4), 0).unwrap();
        assert_eq!(env.reg(Reg::R0).kind, RegKind::Packet { range: 0 });
        let (errno, message) = refusal(context::check_ctx_access(env, reads(Reg::R1, 2, 4), 2));
        assert_eq!(errno, Errno::EACCES);
        assert_eq!(message, "invalid bpf_context access off=2 size=4");
    });
}

#[test]
fn helpers_stay_within_memory() {
    Given::program(EXIT).check(|env| {
        env.point(Reg::R1, RegKind::memory(8));
        let mut check = |size| check_helper_mem(env, Reg::R1, size, Access::Read, false, None);
        check(8).unwrap();
        refusal(check(9));
        assert!(
            env.text()
                .starts_with("invalid access to memory, mem_size=8")
        );
    });
}

#[test]
fn a_pointer_field_is_loaded_and_stored_whole() {
    let field = SpecialField {
        kind: FieldKind::KptrUnref,
        offset: 8,
        target: TypeId::VOID,
        node: 0,
    };
    let check = |text: &str| {
        let check = |env: &mut Env<'_>| {
            refusal(kptr::check_map_kptr_access(
                env,
                reads(Reg::R1, 8, 8),
                &field,
            ))
            .1
        };
        Given::program(text).check(check)
    };
    assert_eq!(
        check("lock *(u64 *)(r1 + 8) += r2; r0 = 0; exit"),
        "kptr in map can only be accessed using BPF_MEM instruction mode"
    );
    assert_eq!(
        check("*(u64 *)(r1 + 8) = 5; r0 = 0; exit"),
        "BPF_ST imm must be 0 when storing to kptr at off=8"
    );
}

#[test]
fn a_map_value_has_bounds() {
    Given::program(EXIT).check(|env| {
        let map = MapRef(0);
        env.point(Reg::R1, RegKind::MapValue { map, uid: 0 });
        map_value::check_map_access(env, reads(Reg::R1, 8, 8), map, 8).unwrap();
        let checked = map_value::check_map_access(env, reads(Reg::R1, 12, 8), map, 12);
        let (_, message) = refusal(checked);
        assert!(message.starts_with("R1 min value is outside"), "{message}");
        assert!(env.text().contains("value_size=16 off=12 size=8"));
    });
}

#[test]
fn objects_of_the_kernel_are_read() {
    Given::program(EXIT).with_types().check(|env| {
        let ty = TypeRef::vmlinux(2);
        env.point(Reg::R1, RegKind::BtfId { ty });
        object::check_ptr_to_btf_access(env, reads(Reg::R1, 8, 8), ty, 8).unwrap();
        assert!(env.reg(Reg::R0).is_scalar());
        let checked = object::check_ptr_to_btf_access(env, reads(Reg::R1, 16, 8), ty, 16);
        let (_, message) = refusal(checked);
        assert_eq!(message, "access beyond struct pair at off 16 size 8");
    });
}

#[test]
fn allocated_objects_are_accessed_with_their_reference() {
    Given::program(EXIT).with_types().check(|env| {
        let ty = TypeRef::vmlinux(2);
        let mut object = RegState::pointer(RegKind::BtfId { ty }, TypeFlags::MEM_ALLOC);
        env.set(Reg::R1, object);
        let (_, message) = refusal(alloc::check_object_access(env, reads(Reg::R1, 8, 8), ty, 8));
        assert!(message.ends_with("ref_obj_id for allocated object must be non-zero"));
        object.ref_obj_id = 1;
        env.set(Reg::R1, object);
        alloc::check_object_access(env, reads(Reg::R1, 8, 8), ty, 8).unwrap();
        assert!(env.reg(Reg::R0).is_scalar());
        env.set(Reg::R1, plain(RegKind::BtfId { ty }));
        let write = MemAccess::new(Reg::R1, 8, 8, Access::Write);
        let (_, message) = refusal(alloc::check_object_access(env, write, ty, 8));
        assert_eq!(message, "only read is supported");
    });
}

#[test]
fn a_context_by_btf_has_a_target() {
    Given::program(EXIT).check(|env| {
        let read = context_btf::read(env, 0, 8);
        assert!(matches!(read, Err(crate::Stop::Unsupported(_))));
    });
}

#[test]
fn a_packet_is_readable_as_far_as_it_is_proven() {
    let packet = plain(RegKind::Packet { range: 14 });
    let (message, text) =
        words(|log| packet::check_packet_access(log, &packet, Reg::R2, 12, 4, false));
    assert_eq!(message, "R2 offset is outside of the packet");
    assert!(text.starts_with("invalid access to packet, off=12 size=4"));
    let fresh = plain(RegKind::PacketMeta { range: -1 });
    words(|log| packet::check_packet_access(log, &fresh, Reg::R2, 0, 1, false));
}

#[test]
fn a_variable_offset_stays_within_a_region() {
    let mut memory = plain(RegKind::memory(16));
    memory.num = crate::Scalar::up_to(8, Behaviours::LINUX_6_18);
    let mut log = Sink::default();
    region::check_region(&mut log, &memory, Reg::R1, 0, 8, 16, false).unwrap();
    let (message, _) = words(|log| region::check_region(log, &memory, Reg::R1, 1, 8, 16, false));
    assert!(message.starts_with("R1 max value is outside"), "{message}");
}

#[test]
fn a_number_that_is_copied_has_an_identity() {
    Given::program(EXIT).check(|env| {
        env.set(Reg::R1, RegState::UNKNOWN);
        env.set(Reg::R2, RegState::constant(3));
        registers::assign_scalar_id(env, Reg::R1);
        registers::assign_scalar_id(env, Reg::R2);
        assert_eq!((env.reg(Reg::R1).id, env.reg(Reg::R2).id), (1, 0));
    });
}

#[test]
fn sockets_have_fields() {
    Given::program(EXIT).check(|env| {
        let socket = plain(RegKind::Socket);
        let mut check = |off, size| {
            let access = reads(Reg::R1, off, size);
            socket::check_sock_access(env.input, &mut env.sink, &socket, access, off)
        };
        check(0, 4).unwrap();
        let (_, message) = refusal(check(1, 4));
        assert_eq!(message, "R1 invalid sock access off=1 size=4");
    });
}

#[test]
fn a_spilled_register_comes_back() {
    Given::program("*(u64 *)(r10 - 8) = r1; r0 = *(u64 *)(r10 - 8); exit").check(|env| {
        env.set(Reg::R1, RegState::constant(77));
        let store = env.input.insns[0];
        check_mem_insn(env, store).unwrap();
        check_mem_access(env, reads(Reg::R10, -8, 8)).unwrap();
        assert_eq!(env.reg(Reg::R0).num.as_const(), Some(77));
        let (_, message) = refusal(check_mem_access(env, reads(Reg::R10, 0, 8)));
        assert_eq!(message, "invalid read from stack R10 off=0 size=8");
    });
}
