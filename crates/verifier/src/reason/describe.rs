//! Description of a register's value, as data.

use super::explanation::{KnownValue, PointerTarget};
use crate::input::Input;
use crate::log::TypeText;
use crate::state::{MapRef, RegKind, RegState, TypeFlags};

/// The known value of a register of frame `frame`.
pub(super) fn value(input: &Input<'_>, frame: usize, reg: &RegState) -> KnownValue {
    if reg.kind == RegKind::NotInit {
        return KnownValue::Unwritten;
    }
    if reg.is_scalar() {
        return KnownValue::Number(reg.num);
    }
    KnownValue::Pointer {
        kind: pointer_kind(input, frame, reg),
        offset: fixed_offset(reg),
        variable: (!reg.num.var_off.is_const()).then_some(reg.num),
        maybe_null: reg.may_be_null(),
        acquired: reg.ref_obj_id != 0,
        ty: TypeText::from(reg.reg_type()),
    }
}

/// The constant part of a pointer's offset.
pub(super) fn fixed_offset(reg: &RegState) -> i64 {
    let known = match reg.num.var_off.is_const() {
        true => reg.num.var_off.value as i64,
        false => 0,
    };
    i64::from(reg.off).wrapping_add(known)
}

/// Pointee of a pointer in a register of frame `frame`.
pub(super) fn pointer_kind(input: &Input<'_>, frame: usize, reg: &RegState) -> PointerTarget {
    match reg.kind {
        RegKind::Ctx => PointerTarget::Context,
        RegKind::MapPtr { map, .. } => PointerTarget::Map(map_name(input, map)),
        RegKind::MapValue { map, .. } => PointerTarget::MapValue {
            map: map_name(input, map),
            size: input.maps[map].value_size(),
        },
        RegKind::MapKey { map, .. } => PointerTarget::MapKey {
            map: map_name(input, map),
            size: input.maps[map].key_size(),
        },
        RegKind::Stack { frame: owner } => PointerTarget::Stack {
            of_caller: owner as usize != frame,
        },
        RegKind::Packet { range } => PointerTarget::Packet { range },
        RegKind::PacketMeta { range } => PointerTarget::PacketMeta { range },
        RegKind::PacketEnd => PointerTarget::PacketEnd,
        RegKind::Socket | RegKind::SockCommon | RegKind::TcpSock | RegKind::XdpSock => {
            PointerTarget::Socket
        }
        RegKind::BtfId { ty } => PointerTarget::Object {
            name: input.type_name(ty),
            untrusted: reg.flags.has(TypeFlags::PTR_UNTRUSTED),
        },
        RegKind::Mem { size, .. } => PointerTarget::Memory {
            size,
            record: reg.flags.has(TypeFlags::MEM_RINGBUF),
        },
        RegKind::Func { .. } => PointerTarget::Function,
        RegKind::NotInit
        | RegKind::Scalar
        | RegKind::FlowKeys
        | RegKind::TpBuffer
        | RegKind::Arena
        | RegKind::Buf
        | RegKind::Insn { .. }
        | RegKind::ConstDynptr { .. } => PointerTarget::Other(TypeText::from(reg.reg_type())),
    }
}

/// The name of a map; templates of inner maps have none.
pub(super) fn map_name(input: &Input<'_>, map: MapRef) -> String {
    let own = input.program.maps().get(map.0 as usize);
    match own {
        Some(map) => map.name.to_string(),
        None => String::from("inner map"),
    }
}
