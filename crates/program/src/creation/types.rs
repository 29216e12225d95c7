//! Types of key and value, and the special fields of values (`map_check_btf`).

use btf::fields::{FieldFault, FieldKind, FieldRecord, FieldSet};
use btf::{Btf, Kind, Shape, TypeId};
use spec::Errno;
use spec::maps::{KeyTypes, MapFlags, MapKind};

use super::MapCreator;
use super::fault::{MapFault, MapRefusal, TypeRule};
use crate::map_def::MapParams;

/// Checks the types of a request, whose numbers are valid; the special fields of values.
/// Fields that violate a rule of their own count as none, as in Linux.
///
/// # Errors
/// The violated rule.
pub(super) fn check_types(
    params: &MapParams,
    kind: MapKind,
    types: &Btf<'_>,
    creator: &MapCreator<'_>,
) -> Result<FieldRecord, MapRefusal> {
    let rule = kind.key_types();
    let (key, value) = (params.key_type, params.value_type);
    if value.is_void() {
        // Types are read only where the value has one.
        return Ok(FieldRecord::default());
    }
    match key.is_void() {
        true if matches!(rule, KeyTypes::Any) => {
            return Err(MapFault::Key(TypeRule::Stated).with(Errno::EINVAL));
        }
        true => {}
        false => check_size(types, key, params.key_size)
            .map_err(|rule| MapFault::Key(rule).with(Errno::EINVAL))?,
    }
    check_size(types, value, params.value_size)
        .map_err(|rule| MapFault::Value(rule).with(Errno::EINVAL))?;
    let fields = known_fields(params, types, creator);
    check_fields(params, kind, &fields, creator)?;
    check_key(params, kind, rule, types)?;
    Ok(fields)
}

/// The special fields of the values of a map by their type, whether or not the kind can hold
/// them.
pub fn value_fields(params: &MapParams, types: &Btf<'_>, kernel: Option<&Btf<'_>>) -> FieldRecord {
    let value = resolved(types, params.value_type).unwrap_or(TypeId::VOID);
    FieldRecord::new(types, kernel, value, FieldSet::MAP_VALUE).unwrap_or_default()
}

/// The special fields that a kernel knows. Where pointers were searched apart, their faults leave the
/// others.
fn known_fields(params: &MapParams, types: &Btf<'_>, creator: &MapCreator<'_>) -> FieldRecord {
    let value = resolved(types, params.value_type).unwrap_or(TypeId::VOID);
    let is_section = types.at(value).kind() == Kind::Datasec;
    let has_locks = creator.locks_in_sections || !is_section;
    let parts = creator.fields.iter();
    let parts = parts.map(|set| set.filter(|kind| has_locks || kind != FieldKind::SpinLock));
    let records = parts.map(|set| FieldRecord::new(types, creator.types, value, set));
    let records = records.map(Result::unwrap_or_default);
    records.reduce(FieldRecord::merge).unwrap_or_default()
}

/// Why the values of a map have no special fields although their type may have: the kernel creates
/// the map with its types and finds none in them.
pub fn field_fault(
    params: &MapParams,
    types: &Btf<'_>,
    kernel: Option<&Btf<'_>>,
) -> Option<FieldFault> {
    let value = resolved(types, params.value_type)?;
    FieldRecord::new(types, kernel, value, FieldSet::MAP_VALUE).err()
}

fn check_fields(
    params: &MapParams,
    kind: MapKind,
    fields: &FieldRecord,
    creator: &MapCreator<'_>,
) -> Result<(), MapRefusal> {
    if fields.fields().is_empty() {
        return Ok(());
    }
    if !creator.privileges.has_bpf() {
        return Err(MapFault::FieldPrivilege.with(Errno::EPERM));
    }
    let for_programs = MapFlags::RDONLY_PROG.with(MapFlags::WRONLY_PROG);
    if params.flags.0 & for_programs.0 != 0 {
        return Err(MapFault::FieldAccess.with(Errno::EACCES));
    }
    let held = creator.registry.map(kind);
    let held = held.map_or(0, |traits| traits.special_fields);
    let mut fields = fields.fields().iter().map(|field| field.kind);
    match fields.find(|field| held & field.bit() == 0) {
        Some(field) => Err(MapFault::Field { kind, field }.with(Errno::EOPNOTSUPP)),
        None => Ok(()),
    }
}

/// The check of a kind (`map_check_btf` of its operations).
#[doc(alias = "map_check_btf")]
fn check_key(
    params: &MapParams,
    kind: MapKind,
    rule: KeyTypes,
    types: &Btf<'_>,
) -> Result<(), MapRefusal> {
    let key = resolved(types, params.key_type);
    let key = key.map_or(Shape::Void, |key| types.at(key).shape());
    let broken = match rule {
        KeyTypes::Any => None,
        KeyTypes::Index if params.key_type.is_void() => {
            let value = resolved(types, params.value_type);
            let is_section =
                value.is_some_and(|value| matches!(types.at(value).shape(), Shape::Datasec(_)));
            let is_variables = kind == MapKind::Array && params.max_entries == 1 && is_section;
            (!is_variables).then_some(TypeRule::Section)
        }
        KeyTypes::Index | KeyTypes::Descriptor => {
            (!is_int(&key, 32)).then_some(TypeRule::Int(kind, 32))
        }
        KeyTypes::Struct => (!matches!(key, Shape::Struct(_))).then_some(TypeRule::Struct(kind)),
        KeyTypes::Cgroup if params.key_size == 8 => {
            (!is_int(&key, 64)).then_some(TypeRule::Int(kind, 64))
        }
        KeyTypes::Cgroup => (!is_cgroup_key(types, &key)).then_some(TypeRule::Struct(kind)),
        KeyTypes::None => (!params.key_type.is_void()).then_some(TypeRule::Unstated(kind)),
        KeyTypes::Untyped => return Err(MapFault::Typed { kind }.with(Errno::ENOTSUPP)),
    };
    match broken {
        Some(rule) => Err(MapFault::Key(rule).with(Errno::EINVAL)),
        None => Ok(()),
    }
}

/// True for a structure with the members of `struct bpf_cgroup_storage_key`: an integer of 64 bits
/// and one of 32 behind it (`btf_member_is_reg_int`).
#[doc(alias = "btf_member_is_reg_int")]
fn is_cgroup_key(types: &Btf<'_>, key: &Shape<'_>) -> bool {
    let Shape::Struct(key) = key else {
        return false;
    };
    let mut members = key.members();
    let (first, second, end) = (members.next(), members.next(), members.next());
    let has = |member: Option<btf::Member>, offset: u32, bits: u32| {
        member.is_some_and(|member| {
            let ty = resolved(types, member.ty);
            let is_at = member.bit_offset == offset * 8;
            is_at && ty.is_some_and(|ty| is_int(&types.at(ty).shape(), bits))
        })
    };
    has(first, 0, 64) && has(second, 8, 32) && end.is_none()
}

/// True for an integer that fills so many bits (`btf_type_is_i32`, `btf_type_is_i64`).
#[doc(alias = "btf_type_is_i32")]
#[doc(alias = "btf_type_is_i64")]
fn is_int(shape: &Shape<'_>, bits: u32) -> bool {
    matches!(shape, Shape::Int(int) if int.offset == 0 && int.bits == bits && int.size * 8 == bits)
}

/// The type below modifiers and variables, as the kernel finds it with its size
/// (`btf_type_id_size`).
#[doc(alias = "btf_type_id_size")]
fn resolved(types: &Btf<'_>, id: TypeId) -> Option<TypeId> {
    let below = types.skip_modifiers(id)?;
    match types.at(below).shape() {
        Shape::Var(var) => types.skip_modifiers(var.ty),
        _ => Some(below),
    }
}

fn check_size(types: &Btf<'_>, id: TypeId, size: u32) -> Result<(), TypeRule> {
    let found = types.get(id).and_then(|_| types.size_of(id));
    match found == Some(size) {
        true => Ok(()),
        false => Err(TypeRule::Size(found, size)),
    }
}
