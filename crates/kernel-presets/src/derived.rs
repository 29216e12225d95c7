//! What an older release has of the registry and types of another: helpers, kfuncs, kinds of maps, types of
//! programs, attach types and fields of contexts that are not newer, by the tables of releases
//! ([`spec::since`]). Checks by CO-RE whether the kernel has one answer by these tables, too.

use btf::{Btf, Kind, Shape, TypeId};
use spec::helpers;
use spec::kernel::Release;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::registry::{FieldRule, Layout, Registry, RegistryData, text};
use spec::since;

/// Fields of contexts that came after the oldest release with a derived kernel: structure, field, offset,
/// release.
const FIELDS: &[(&str, &str, u32, Release)] = &[
    ("__sk_buff", "tstamp_type", 180, release(5, 18)),
    ("__sk_buff", "hwtstamp", 184, release(5, 16)),
    ("bpf_sk_lookup", "ingress_ifindex", 64, release(5, 17)),
];

const fn release(major: u8, minor: u8) -> Release {
    Release { major, minor }
}

/// True for programs whose context is a structure of [`FIELDS`].
fn has_context(kind: ProgramType, structure: &str) -> bool {
    use ProgramType as Type;
    match structure {
        "bpf_sk_lookup" => kind == Type::SkLookup,
        _ => matches!(
            kind,
            Type::SocketFilter
                | Type::SchedCls
                | Type::SchedAct
                | Type::CgroupSkb
                | Type::LwtIn
                | Type::LwtOut
                | Type::LwtXmit
                | Type::LwtSeg6local
                | Type::SkSkb
                | Type::FlowDissector
        ),
    }
}

/// Types in which the names of what is newer than a release are hidden.
pub fn types(types: &Btf<'_>, release: Release) -> Btf<'static> {
    let mut older = types.to_owned();
    for (name, is_newer) in [
        ("bpf_func_id", is_newer_helper as fn(u32, Release) -> bool),
        ("bpf_map_type", |number, release| {
            MapKind::from_number(number).is_some_and(|kind| kind.since().release > release)
        }),
        ("bpf_prog_type", |number, release| {
            ProgramType::from_number(number).is_some_and(|kind| kind.since().release > release)
        }),
        ("bpf_attach_type", |number, release| {
            AttachType::from_number(number).is_some_and(|kind| kind.since().release > release)
        }),
    ] {
        let Some(ty) = types.find(Kind::Enum, name) else {
            continue;
        };
        if let Shape::Enum(values) = ty.shape() {
            for (at, value) in values.values().enumerate() {
                if u32::try_from(value.value).is_ok_and(|number| is_newer(number, release)) {
                    older.hide(ty.id(), Some(at));
                }
            }
        }
    }
    for (structure, field, _, since) in FIELDS {
        let newer = types
            .find(Kind::Struct, structure)
            .filter(|_| *since > release);
        if let Some((id, at)) = newer.and_then(|ty| member(types, ty.id(), field)) {
            older.hide(id, Some(at));
        }
    }
    let functions = types.types().filter(|ty| ty.kind() == Kind::Func);
    for function in functions {
        let since = function.name().to_str().and_then(since::kfunc);
        if since.is_some_and(|since| since.release > release) {
            older.hide(function.id(), None);
        }
    }
    older
}

fn is_newer_helper(id: u32, release: Release) -> bool {
    let helper = i32::try_from(id).ok().and_then(helpers::helper);
    helper.is_some_and(|helper| helper.since.release > release)
}

/// The structure and the place of a member, which may be in a structure or union without a name.
fn member(types: &Btf<'_>, id: TypeId, name: &str) -> Option<(TypeId, usize)> {
    let composite = types.at(id).as_composite()?;
    let mut members = composite.members().enumerate();
    members.find_map(|(at, member)| match types.string(member.name) {
        found if found == name => Some((id, at)),
        found if found.is_empty() => self::member(types, types.skip_modifiers(member.ty)?, name),
        _ => None,
    })
}

/// Takes newer fields out of the contexts.
fn without_fields(older: &mut RegistryData, release: Release) {
    for (structure, _, offset, since) in FIELDS {
        let of_structure = older.programs.iter();
        let layouts = of_structure.filter(|((kind, _), _)| has_context(*kind, structure));
        let layouts: Vec<u32> = layouts.filter_map(|(_, rules)| rules.layout).collect();
        for layout in layouts.into_iter().filter(|_| *since > release) {
            let Some(Layout::Fields(fields)) = older.layouts.get_mut(layout as usize) else {
                continue;
            };
            let parted = fields.iter().flat_map(|rule| {
                let before = FieldRule {
                    last: rule.last.min(offset.saturating_sub(rule.step)),
                    ..rule.clone()
                };
                let behind = FieldRule {
                    first: rule.first.max(offset + rule.step),
                    ..rule.clone()
                };
                match (rule.first..=rule.last).contains(offset) {
                    true => vec![before, behind],
                    false => vec![rule.clone()],
                }
            });
            *fields = parted.filter(|rule| rule.first <= rule.last).collect();
        }
    }
}

/// The text of a registry without what is newer than a release.
pub fn older(registry: &Registry, release: Release) -> String {
    let mut older = (**registry).clone();
    for set in &mut older.helper_sets {
        set.retain(|entry| !is_newer_helper(entry.id, release));
    }
    older.programs.retain(|(kind, attach), _| {
        kind.since().release <= release
            && attach.is_none_or(|attach| attach.since().release <= release)
    });
    without_fields(&mut older, release);
    older.maps.retain(|kind, _| kind.since().release <= release);
    for traits in older.maps.values_mut() {
        let helpers = traits.helpers.iter().copied();
        traits.helpers = helpers
            .filter(|&id| !is_newer_helper(id, release))
            .collect();
    }
    older
        .kfuncs
        .retain(|name, _| since::kfunc(name).is_none_or(|since| since.release <= release));
    text::write(&older)
}

#[cfg(test)]
mod tests {
    use spec::maps::MapKind;
    use spec::registry::RegistryData;

    use super::*;

    const LOOP: u32 = 181;
    const CGRP_STORAGE_GET: u32 = 210;

    #[test]
    fn names_of_what_is_newer_are_hidden() {
        let kernel = kernel_data::linux_6_18();
        let whole = kernel.btf().unwrap();
        let release = Release {
            major: 5,
            minor: 15,
        };
        let older = types(whole, release);
        let has = |types: &Btf<'_>, name: &str| types.find(Kind::Func, name).is_some();
        assert!(has(whole, "bpf_task_acquire") && !has(&older, "bpf_task_acquire"));
        assert!(has(&older, "kern_path"));
        let value = |types: &Btf<'_>, of: &str, name: &str| {
            let Some(Shape::Enum(values)) = types.find(Kind::Enum, of).map(|ty| ty.shape()) else {
                return false;
            };
            values
                .values()
                .any(|value| types.string(value.name) == name)
        };
        // Of Linux 5.17, 5.15, 5.16 and 6.4.
        for (of, name, stays) in [
            ("bpf_func_id", "BPF_FUNC_loop", false),
            ("bpf_func_id", "BPF_FUNC_timer_init", true),
            ("bpf_map_type", "BPF_MAP_TYPE_BLOOM_FILTER", false),
            ("bpf_prog_type", "BPF_PROG_TYPE_NETFILTER", false),
        ] {
            assert!(value(whole, of, name), "{name}");
            assert_eq!(value(&older, of, name), stays, "{name}");
        }
        for (structure, field, offset, _) in FIELDS {
            let find = |types: &Btf<'_>| {
                let id = types.find(Kind::Struct, structure).unwrap().id();
                let (id, at) = member(types, id, field)?;
                let offset = types.at(id).as_composite()?.member(at)?.bit_offset;
                Some(offset)
            };
            assert_eq!(
                (find(whole), find(&older)),
                (Some(8 * offset), None),
                "{field}"
            );
        }
    }

    #[test]
    fn what_is_newer_is_left_out() {
        let kernel = kernel_data::linux_6_18();
        let whole = kernel.registry().unwrap();
        let release = Release { major: 6, minor: 1 };
        let older = text::parse(&older(whole, release)).unwrap();
        let has = |registry: &RegistryData, id| {
            let mut sets = registry.helper_sets.iter();
            sets.any(|set| set.iter().any(|entry| entry.id == id))
        };
        // Of Linux 5.17 and 6.2.
        assert!(has(&older, LOOP) && has(whole, CGRP_STORAGE_GET));
        assert!(!has(&older, CGRP_STORAGE_GET));
        assert!(older.map(MapKind::Hash).is_some());
        assert!(older.map(MapKind::Arena).is_none() && whole.map(MapKind::Arena).is_some());
        assert!(older.kfunc_named("crash_kexec").is_some());
        assert!(older.kfunc_named("bpf_arena_alloc_pages").is_none());
        // Sets that shrink keep their numbers.
        assert_eq!(older.helper_sets.len(), whole.helper_sets.len());
        assert!(older.programs.len() < whole.programs.len());
    }
}
