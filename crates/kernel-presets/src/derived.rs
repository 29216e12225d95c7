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
