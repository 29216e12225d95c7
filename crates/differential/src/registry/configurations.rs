//! The registries of two configurations of one release, from the answers of a kernel in each.
//!
//! One kernel, in a minimal configuration, is of the point release whose rules count; the other has
//! what distributions configure, and may be of another point release. [`merge`] gives each what its
//! configuration decides, and both what the first kernel's release decides: the instructions that
//! Linux makes of accesses and calls, and the lists, as far as the first kernel has their
//! functions.

use std::collections::BTreeSet;

use btf::{Btf, Kind};
use spec::registry::{HelperEntry, Layout, ProgramRules, RegistryData};

use super::build::index_of;
use super::trampolines::{self, add_proto};

/// The registries of both configurations: of what `other`, a kernel of the release with trampolines,
/// and `minimal` answered. Each has the kfuncs that its kernel has.
pub fn merge(
    other: RegistryData,
    mut minimal: RegistryData,
    minimal_types: &Btf<'_>,
) -> (RegistryData, RegistryData) {
    let own: BTreeSet<Box<str>> = minimal.kfuncs.keys().cloned().collect();
    trampolines::add(&mut minimal, &other);
    minimal.kfuncs.retain(|name, _| own.contains(name));
    let mut whole = rebased(&other, &minimal);
    let is_known = |name: &str| minimal_types.find(Kind::Func, name).is_some();
    whole.lists.add_functions(&other.lists, is_known);
    (whole, minimal)
}

/// What `registry` has, with the facts of the release from `first`, whose tables of prototypes, sets of
/// helpers and layouts it continues, so that most lines of both are the same.
fn rebased(registry: &RegistryData, first: &RegistryData) -> RegistryData {
    let mut whole = RegistryData {
        programs: registry.programs.clone(),
        iterators: registry.iterators.clone(),
        maps: registry.maps.clone(),
        kfuncs: registry.kfuncs.clone(),
        ..first.clone()
    };
    let set = |whole: &mut RegistryData, at: u32| {
        let entries = registry.helper_sets[at as usize].iter().map(|entry| {
            let proto = add_proto(whole, &registry.protos[entry.proto as usize]);
            HelperEntry { proto, ..*entry }
        });
        let entries = entries.collect();
        index_of(&mut whole.helper_sets, entries)
    };
    for (&(kind, attach), rules) in &registry.programs {
        let theirs = rules.layout.map(|at| &registry.layouts[at as usize]);
        let ours = first.programs.get(&(kind, attach));
        let ours = ours.or_else(|| first.programs.get(&(kind, None)));
        let ours = ours.and_then(|rules| first.layouts.get(rules.layout? as usize));
        let layout = theirs.map(|theirs| rewritten_as(theirs, ours));
        let rules = ProgramRules {
            helpers: set(&mut whole, rules.helpers),
            layout: layout.map(|layout| index_of(&mut whole.layouts, layout)),
            ..*rules
        };
        whole.programs.insert((kind, attach), rules);
    }
    for (name, target) in &registry.iterators {
        let helpers = target.helpers.map(|at| set(&mut whole, at));
        if let Some(target) = whole.iterators.get_mut(name) {
            target.helpers = helpers;
        }
    }
    for proto in &registry.protos {
        add_proto(&mut whole, proto);
    }
    whole
}

/// A layout whose accesses become as many instructions as those of another one.
fn rewritten_as(layout: &Layout, other: Option<&Layout>) -> Layout {
    let (Layout::Fields(rules), Some(Layout::Fields(others))) = (layout, other) else {
        return layout.clone();
    };
    let mut rules = rules.clone();
    for rule in &mut rules {
        let place = (rule.first, rule.last, rule.step);
        let mut others = others.iter();
        if let Some(other) = others.find(|one| (one.first, one.last, one.step) == place) {
            rule.rewritten.clone_from(&other.rewritten);
        }
    }
    Layout::Fields(rules)
}
