//! What an older release has of a registry: helpers, kfuncs, kinds of maps and types of programs that are
//! not newer, by the tables of releases ([`spec::since`]).

use spec::helpers;
use spec::kernel::Release;
use spec::registry::{Registry, text};
use spec::since;

/// The text of a registry without what is newer than a release.
pub fn older(registry: &Registry, release: Release) -> String {
    let mut older = (**registry).clone();
    let has_helper = |id: u32| {
        let helper = i32::try_from(id).ok().and_then(helpers::helper);
        helper.is_none_or(|helper| helper.since.release <= release)
    };
    for set in &mut older.helper_sets {
        set.retain(|entry| has_helper(entry.id));
    }
    older.programs.retain(|(kind, attach), _| {
        kind.since().release <= release
            && attach.is_none_or(|attach| attach.since().release <= release)
    });
    older.maps.retain(|kind, _| kind.since().release <= release);
    for traits in older.maps.values_mut() {
        let helpers = traits.helpers.iter().copied();
        traits.helpers = helpers.filter(|&id| has_helper(id)).collect();
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
