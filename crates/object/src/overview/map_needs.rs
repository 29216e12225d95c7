//! Requirements of a map: map kind, flags, and special fields of its values.

use btf::{Btf, Kind, Shape, TypeId};
use program::MapParams;
use spec::since::Feature;

use super::{Need, Thing};
use crate::maps::Map;

/// Maximum depth of structures in values, and of pointers followed for their tags.
const DEPTH: usize = 8;

/// Special structures in values, by name.
const KNOWN: &[(&str, Feature)] = &[
    ("bpf_spin_lock", Feature::SpinLocks),
    ("bpf_timer", Feature::Timers),
    ("bpf_list_head", Feature::Lists),
    ("bpf_rb_root", Feature::Trees),
    ("bpf_wq", Feature::WorkQueues),
    ("bpf_res_spin_lock", Feature::ResilientLocks),
    ("bpf_task_work", Feature::TaskWork),
];

/// Type tags of pointers in values, by name.
const TAGS: &[(&str, Feature)] = &[
    ("kptr", Feature::KernelPointers),
    ("kptr_untrusted", Feature::KernelPointers),
    ("percpu_kptr", Feature::PercpuPointers),
    ("uptr", Feature::UserPointers),
];

/// struct_ops types newer than the first, by name.
const TABLES: &[(&str, Feature)] = &[
    ("hid_bpf_ops", Feature::HidOps),
    ("sched_ext_ops", Feature::SchedExt),
    ("Qdisc_ops", Feature::QdiscOps),
];

pub(super) fn needs(map: &Map<'_>, types: Option<&Btf<'_>>) -> Vec<Need> {
    let mut needs = Vec::new();
    if !map.autocreate {
        return needs;
    }
    of_params(map.params(), map.data().is_some(), &mut needs);
    if let Some(inner) = map.inner() {
        of_params(inner, false, &mut needs);
    }
    let Some(types) = types else {
        return needs;
    };
    if let Some(table) = map.struct_ops() {
        let ty = types.skip_modifiers(table.ty).unwrap_or(table.ty);
        let name = types.at(ty).name();
        let known = TABLES.iter().find(|(known, _)| name == *known);
        needs.extend(known.map(|(_, feature)| Need::feature(*feature)));
        return needs;
    }
    let values = [Some(map.params()), map.inner()];
    for params in values.into_iter().flatten() {
        of_value(types, params.value_type, DEPTH, &mut needs);
    }
    needs
}

fn of_params(params: &MapParams, is_data: bool, needs: &mut Vec<Need>) {
    if let Some(kind) = params.kind() {
        needs.push(Need::of(Thing::MapKind(kind), Some(kind.since())));
    }
    for (name, since) in params.flags.since() {
        // libbpf mmaps global data where the kernel supports that.
        let is_optional = is_data && name == "BPF_F_MMAPABLE";
        if !is_optional {
            needs.push(Need::of(Thing::MapFlag(name), Some(since)));
        }
    }
    if params.extra != 0 {
        needs.push(Need::feature(Feature::MapExtra));
    }
    if is_data {
        needs.push(Need::feature(Feature::GlobalData));
    }
}

fn of_value(types: &Btf<'_>, id: TypeId, depth: usize, needs: &mut Vec<Need>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let ty = types.at(types.skip_modifiers(id).unwrap_or(id));
    let mut push = |feature: Option<&(&str, Feature)>| {
        let need = feature.map(|(_, feature)| Need::feature(*feature));
        needs.extend(need.filter(|need| !needs.contains(need)));
    };
    match ty.shape() {
        Shape::Struct(structure) | Shape::Union(structure) => {
            let name = ty.name();
            let known = KNOWN.iter().find(|(known, _)| name == *known);
            push(known);
            if known.is_none() {
                for member in structure.members() {
                    of_value(types, member.ty, depth, needs);
                }
            }
        }
        Shape::Array(array) => of_value(types, array.element, depth, needs),
        Shape::Datasec(section) => {
            for placed in section.vars() {
                if let Shape::Var(var) = types.at(placed.var).shape() {
                    of_value(types, var.ty, depth, needs);
                }
            }
        }
        Shape::Ptr(to) => {
            let to = types.at(to);
            if to.kind() == Kind::TypeTag {
                let name = to.name();
                push(TAGS.iter().find(|(known, _)| name == *known));
            }
        }
        _ => {}
    }
}
