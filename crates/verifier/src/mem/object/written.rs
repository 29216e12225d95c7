//! Writes to objects of the kernel, which some program types make (`btf_struct_access` of their
//! `bpf_verifier_ops`).

use std::ops::Range;

use btf::{Btf, Kind, Name, TypeId};
use spec::behaviour::Behaviour;
use spec::registry::{PACKET_WRITES, Writes, WrittenMember};

use super::super::MemAccess;
use crate::env::Check;
use crate::flow::is_trusted;
use crate::state::{TypeFlags, TypeRef};
use crate::{Result, Stop};

/// Most structures around a member.
const MAX_NESTING: u32 = 8;

/// True if the kernel has the part of nf_conntrack that decides about such writes: built in, or
/// in a module that is given.
fn has_conntrack(env: &Check<'_>) -> bool {
    const KFUNC: &str = "bpf_ct_insert_entry";
    let modules = env.input.modules.iter().map(|module| &*module.btf);
    { modules.chain(env.input.vmlinux) }.any(|types| types.find(Kind::Func, KFUNC).is_some())
}

/// Checks a write to an object at `off`, the pointer's offset included.
pub(super) fn check_write(
    env: &mut Check<'_>,
    access: MemAccess,
    ty: TypeRef,
    off: i32,
) -> Result<()> {
    let reg = env.reg(access.ptr);
    let is_trusted = is_trusted(reg) || reg.flags.has(TypeFlags::MEM_RCU);
    let may_write = is_trusted || !env.input.rules.has(Behaviour::WritesByTrusted);
    let may_write = may_write && env.input.type_rules().writes_objects;
    refuse_if!(!may_write, env => Mem::ObjectWrite);
    check_members(env, access, ty, off).map_err(|stop| match stop {
        Stop::Refused(_) if env.input.rules.has(Behaviour::ObjectWritesNamed) => {
            let name = env.input.type_name(ty);
            let MemAccess { ptr: reg, size, .. } = access;
            refuse!(env => Mem::ObjectNotWritten { reg, name, off, size })
        }
        stop => stop,
    })
}

/// Checks a write of a program whose type writes to some objects.
fn check_members(env: &mut Check<'_>, access: MemAccess, ty: TypeRef, off: i32) -> Result<()> {
    let Some(types) = env.input.btf(ty) else {
        return Err(Stop::unsupported("write to an object without its type"));
    };
    let object = types.at(TypeId(ty.id));
    let name = object.name();
    let bytes = off..off + access.size as i32;
    let Some(operations) = env.input.struct_ops() else {
        // The first type of this name, so that those of modules are others where vmlinux has one.
        let is_named = |member: &WrittenMember| name == member.object;
        let mut named = types.find_all(object.kind(), name.as_bytes());
        let is_first = named.next().is_some_and(|first| first.id() == object.id());
        if !is_first || !PACKET_WRITES.iter().any(is_named) {
            return Err(match has_conntrack(env) {
                true => refuse!(env => Mem::ObjectWrite),
                false => refuse!(env => Mem::UnloggedWrite),
            });
        }
        return check_member(env, types, PACKET_WRITES, (name, "nf_conn"), bytes);
    };
    match operations.writes {
        Writes::Whole(structure) if name != structure => {
            Err(refuse!(env => Mem::OtherWrite { structure }))
        }
        Writes::Whole(_) => match types.size_of(object.id()) {
            Some(whole) if bytes.end as u32 <= whole => Ok(()),
            _ => Err(refuse!(env => Mem::WriteOutside { off, size: access.size })),
        },
        Writes::UnloggedMembers(members) => {
            let mut ranges = ranges(types, members, name);
            let is_inside =
                |(_, range): (_, Range<i32>)| range.start <= bytes.start && bytes.end <= range.end;
            match ranges.any(is_inside) {
                true => Ok(()),
                false => Err(refuse!(env => Mem::UnloggedWrite)),
            }
        }
        Writes::Members(members) if members.iter().all(|member| name != member.object) => {
            Err(refuse!(env => Mem::ObjectWrite))
        }
        Writes::Members(members) => {
            let label = name.to_str().unwrap_or_default();
            check_member(env, types, members, (name, label), bytes)
        }
    }
}

/// Checks a write to an object that has members for it, by its name and that in the log.
fn check_member(
    env: &mut Check<'_>,
    types: &Btf<'_>,
    members: &'static [WrittenMember],
    (object, name): (Name<'_>, &str),
    bytes: Range<i32>,
) -> Result<()> {
    let begins = |(member, range): &(&WrittenMember, Range<i32>)| match member.anywhere {
        true => range.contains(&bytes.start),
        false => range.start == bytes.start,
    };
    let rules = env.input.rules;
    let is_known = |(member, _): &(&WrittenMember, _)| match member.member {
        "sk_pacing_rate" | "sk_pacing_status" => rules.has(Behaviour::PacingWritten),
        "snd_cwnd_stamp" | "app_limited" => rules.has(Behaviour::WindowStampsWritten),
        _ => true,
    };
    let found = ranges(types, members, object).filter(is_known).find(begins);
    let off = bytes.start;
    match found {
        None => Err(refuse!(env => Mem::NoWriteSupport { name, off })),
        Some((_, range)) if bytes.end > range.end => {
            let size = bytes.end - off;
            Err(refuse!(env => Mem::WriteBeyondMember { off, size, name, end: range.end }))
        }
        Some(_) => Ok(()),
    }
}

/// The members of an object that programs write to, with their bytes.
fn ranges<'a>(
    types: &'a Btf<'_>,
    members: &'static [WrittenMember],
    object: Name<'a>,
) -> impl Iterator<Item = (&'static WrittenMember, Range<i32>)> + 'a {
    let of_object = members.iter().filter(move |member| object == member.object);
    of_object.filter_map(|member| Some((member, bytes_of(types, member)?)))
}

/// Bytes of a member.
fn bytes_of(types: &Btf<'_>, member: &WrittenMember) -> Option<Range<i32>> {
    let mut id = types.find(Kind::Struct, member.structure)?.id();
    let mut start = 0;
    for name in member.member.split('.') {
        let (offset, ty) = find_member(types, id, name, MAX_NESTING)?;
        start = offset.checked_add(start)?;
        id = types.skip_modifiers(ty)?;
    }
    if let Some((inner, name)) = member.inner {
        let inner = types.find(Kind::Struct, inner)?.id();
        let (offset, ty) = find_member(types, inner, name, MAX_NESTING)?;
        start = offset.checked_add(start)?;
        id = ty;
    }
    let end = start.checked_add(types.size_of(id)?)?;
    Some(start as i32..i32::try_from(end).ok()?)
}

/// Offset and type of a member, which may lie in structures without a name.
fn find_member(types: &Btf<'_>, id: TypeId, name: &str, depth: u32) -> Option<(u32, TypeId)> {
    for member in types.get(id)?.as_composite()?.members() {
        let offset = member.bit_offset / 8;
        let own = types.string(member.name);
        if own == name {
            return Some((offset, member.ty));
        }
        if own.is_empty() && depth > 0 {
            let inner = types.skip_modifiers(member.ty)?;
            if let Some((inner, ty)) = find_member(types, inner, name, depth - 1) {
                return Some((offset.checked_add(inner)?, ty));
            }
        }
    }
    None
}
