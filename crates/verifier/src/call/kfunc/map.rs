//! Maps as arguments of kfuncs, by the parameter's name.

use btf::Kind;
use btf::fields::FieldKind;
use spec::behaviour::Behaviour;

use super::Callee;
use super::arg_kind::stands_for;
use super::args::{TRUSTED, check_object, check_pointer, check_trust};
use crate::call::REGS;
use crate::call::meta::CallMeta;
use crate::env::Check;
use crate::state::{MapRef, RegKind, RegState};
use crate::{Result, Stop, refuse};

/// Reason why no answer is right where Linux 6.18 reads the special fields of what is no map, or of a
/// map without any: it reads at address 0.
const CRASH: &str =
    "map beside a work queue or work of a task whose special fields Linux 6.18 reads at address 0";

/// Checks a map, or a pointer to its structure.
pub(super) fn check_map(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    let ptr = REGS[index];
    let reg = *env.reg(ptr);
    match SeenMap::of(&reg) {
        SeenMap::None if env.input.rules.has(Behaviour::ArgumentsByType) => {
            check_pointer(env, callee, ptr, meta)?;
            let (kind, name, or) = (Kind::Struct.name(), "bpf_map", " or map_ptr");
            let found = reg.reg_type();
            return Err(refuse!(env => Call::NotStructure { index, found, kind, name, or }));
        }
        SeenMap::None => return Err(refuse!(env => Call::NotMapPointer { reg: ptr })),
        SeenMap::Map(map) => check_field_map(env, map, meta)?,
        SeenMap::Other if meta.map.is_some() => return Err(Stop::unsupported(CRASH)),
        SeenMap::Other => {}
    }
    check_trust(env, callee, ptr)?;
    check_pointer(env, callee, ptr, meta)?;
    if let RegKind::MapPtr { .. } = reg.kind {
        return Ok(());
    }
    if matches!(reg.kind, RegKind::BtfId { .. }) || stands_for(&reg).is_some() {
        let map = callee.btf.find(Kind::Struct, "bpf_map");
        let map = map.ok_or_else(|| callee.unsupported())?;
        return check_object(env, callee, index, map.id());
    }
    Err(refuse!(env => Call::NotObject {
        index, found: reg.reg_type(), expected: reg.kind.base().with(reg.flags.and(TRUSTED))
    }))
}

/// Checks a map of the program.
pub(super) fn check_const_map(
    env: &mut Check<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    let ptr = REGS[index];
    let reg = *env.reg(ptr);
    match reg.kind {
        RegKind::MapPtr { map, uid } if !reg.may_be_null() => {
            check_field_map(env, (map, uid), meta)
        }
        _ => Err(refuse!(env => Call::NotMapPointer { reg: ptr })),
    }
}

/// What Linux takes for a map in a register (`bpf_reg_state::map_ptr`): the union of the register
/// has it beside what other kinds have.
enum SeenMap {
    /// Nothing.
    None,
    /// A map, with the identity of the lookup that it came from.
    Map((MapRef, u32)),
    /// Something else.
    Other,
}

impl SeenMap {
    fn of(reg: &RegState) -> SeenMap {
        let has_union = match reg.kind {
            RegKind::MapPtr { map, uid }
            | RegKind::MapValue { map, uid }
            | RegKind::MapKey { map, uid } => return SeenMap::Map((map, uid)),
            RegKind::Insn { map } => return SeenMap::Map((map, 0)),
            RegKind::BtfId { .. } | RegKind::ConstDynptr { .. } => true,
            RegKind::Mem { size, dynptr_id } => size | dynptr_id != 0,
            RegKind::Packet { range } | RegKind::PacketMeta { range } => range != 0,
            RegKind::Func { subprog } => subprog != 0,
            RegKind::NotInit
            | RegKind::Scalar
            | RegKind::Ctx
            | RegKind::Stack { .. }
            | RegKind::PacketEnd
            | RegKind::FlowKeys
            | RegKind::Socket
            | RegKind::SockCommon
            | RegKind::TcpSock
            | RegKind::TpBuffer
            | RegKind::XdpSock
            | RegKind::Arena
            | RegKind::Buf => reg.residue != 0,
        };
        match has_union {
            true => SeenMap::Other,
            false => SeenMap::None,
        }
    }
}

/// Checks that the map of a work queue or of work of a task is the one whose value has it.
fn check_field_map(env: &mut Check<'_>, map: (MapRef, u32), meta: &mut CallMeta) -> Result<()> {
    let record = env.input.maps[map.0].record();
    let is_task_work = record.has(FieldKind::TaskWork);
    let of_value = meta.map.replace(map);
    if of_value.is_some() && record.fields().is_empty() {
        return Err(Stop::unsupported(CRASH));
    }
    match of_value.filter(|of_value| *of_value != map) {
        Some((_, uid)) if is_task_work => {
            Err(refuse!(env => Call::TaskWorkOfOtherMap { uid, map_uid: map.1 }))
        }
        Some((_, uid)) if record.has(FieldKind::Workqueue) => {
            Err(refuse!(env => Call::WorkqueueOfOtherMap { uid, map_uid: map.1 }))
        }
        _ => Ok(()),
    }
}
