//! Requirements of a map: map kind, flags, and special fields of its values.

use btf::Btf;
use program::MapParams;
use spec::since::{Feature, value_features};

use super::{RequiredFeature, Requirement};
use crate::maps::Map;

/// struct_ops types newer than the first, by name.
const TABLES: &[(&str, Feature)] = &[
    ("hid_bpf_ops", Feature::HidOps),
    ("sched_ext_ops", Feature::SchedExt),
    ("Qdisc_ops", Feature::QdiscOps),
];

pub(super) fn needs(map: &Map<'_>, types: Option<&Btf<'_>>) -> Vec<Requirement> {
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
        needs.extend(known.map(|(_, feature)| Requirement::feature(*feature)));
        return needs;
    }
    let values = [Some(map.params()), map.inner()];
    for params in values.into_iter().flatten() {
        for feature in value_features(types, params.value_type) {
            let need = Requirement::feature(feature);
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

fn of_params(params: &MapParams, is_data: bool, needs: &mut Vec<Requirement>) {
    if let Some(kind) = params.kind() {
        needs.push(Requirement::of(
            RequiredFeature::MapKind(kind),
            Some(kind.since()),
        ));
    }
    for (name, since) in params.flags.since() {
        // libbpf mmaps global data where the kernel supports that.
        let is_optional = is_data && name == "BPF_F_MMAPABLE";
        if !is_optional {
            needs.push(Requirement::of(RequiredFeature::MapFlag(name), Some(since)));
        }
    }
    if params.extra != 0 {
        needs.push(Requirement::feature(Feature::MapExtra));
    }
    if is_data {
        needs.push(Requirement::feature(Feature::GlobalData));
    }
}
