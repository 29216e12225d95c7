//! The registries of two configurations of one release, from the answers of a kernel in each.
//!
//! One kernel, in a minimal configuration, is of the point release whose rules count; the other has
//! what distributions configure, and may be of another point release. [`merge`] gives each the
//! facts that its configuration decides, and both the rules of the first kernel's release.

use btf::{Btf, Kind};
use spec::registry::{HelperEntry, ProgramRules, RegistryData};

use super::build::index_of;
use super::trampolines::{self, add_proto};

/// The registries of both configurations: of what `other`, a kernel of the release with trampolines,
/// and `minimal` answered. Each has the kfuncs that its types have.
pub fn merge(
    other: RegistryData,
    mut minimal: RegistryData,
    other_types: &Btf<'_>,
    minimal_types: &Btf<'_>,
) -> (RegistryData, RegistryData) {
    trampolines::add(&mut minimal, &other);
    let mut whole = rebased(other, &minimal);
    // What the release decides.
    whole.sockets.clone_from(&minimal.sockets);
    whole.rewriting.clone_from(&minimal.rewriting);
    for (registry, types) in [(&mut whole, other_types), (&mut minimal, minimal_types)] {
        let has = |name: &str| types.find(Kind::Func, name).is_some();
        registry.kfuncs.retain(|name, _| has(name));
    }
    (whole, minimal)
}

/// A registry whose tables of prototypes, sets of helpers and layouts begin as those of another one, so
/// that most lines of both are the same.
fn rebased(registry: RegistryData, first: &RegistryData) -> RegistryData {
    let mut tables = RegistryData {
        protos: first.protos.clone(),
        helper_sets: first.helper_sets.clone(),
        layouts: first.layouts.clone(),
        ..RegistryData::default()
    };
    let mut set = |tables: &mut RegistryData, at: u32| {
        let entries = registry.helper_sets[at as usize].iter().map(|entry| {
            let proto = add_proto(tables, &registry.protos[entry.proto as usize]);
            HelperEntry { proto, ..*entry }
        });
        let entries = entries.collect();
        index_of(&mut tables.helper_sets, entries)
    };
    let mut programs = registry.programs.clone();
    for rules in programs.values_mut() {
        let layout = rules.layout.map(|at| registry.layouts[at as usize].clone());
        *rules = ProgramRules {
            helpers: set(&mut tables, rules.helpers),
            layout: layout.map(|layout| index_of(&mut tables.layouts, layout)),
            ..*rules
        };
    }
    let mut iterators = registry.iterators.clone();
    for target in iterators.values_mut() {
        target.helpers = target.helpers.map(|at| set(&mut tables, at));
    }
    for proto in &registry.protos {
        add_proto(&mut tables, proto);
    }
    RegistryData {
        protos: tables.protos,
        helper_sets: tables.helper_sets,
        layouts: tables.layouts,
        programs,
        iterators,
        ..registry
    }
}
