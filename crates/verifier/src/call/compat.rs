//! Compatibility of helpers and map kinds, by the registry (`check_map_func_compatibility`).

use spec::helpers::HelperId;
use spec::maps::MapKind;

use crate::env::VerifierEnv;
use crate::state::MapRef;
use crate::{Result, refuse};

/// Checks that a helper takes a map (`check_map_func_compatibility`).
pub(super) fn check_map_func_compatibility(
    env: &mut VerifierEnv<'_>,
    map: Option<MapRef>,
    id: i32,
) -> Result<()> {
    let Some(map) = map else { return Ok(()) };
    let info = &env.input.maps[map];
    let is_of_sockets = info.kind().is_some_and(MapKind::holds_sockets);
    let is_taken = match HelperId::from_number(id) {
        Some(helper @ (HelperId::MapUpdateElem | HelperId::MapDeleteElem)) if is_of_sockets => {
            may_change_sockmap(env, helper)
        }
        _ => {
            let kind = info.kind().and_then(|kind| env.input.registry.map(kind));
            kind.is_none_or(|kind| kind.allows_helper(id as u32))
        }
    };
    if is_taken {
        return Ok(());
    }
    let name = env.input.registry.helper_name(id);
    Err(refuse!(env => Call::MapForHelper {
        map_type: env.input.maps[map].def().params.map_type, name, id
    }))
}

/// True if the program may change sockets in a map; says so in the log if not
/// (`may_update_sockmap`).
#[doc(alias = "may_update_sockmap")]
fn may_change_sockmap(env: &mut VerifierEnv<'_>, helper: HelperId) -> bool {
    let rules = env.input.registry.rules(&env.input.context);
    let is_allowed = rules.is_some_and(|rules| match helper {
        HelperId::MapDeleteElem => rules.deletes_sockmap,
        _ => rules.updates_sockmap,
    });
    if !is_allowed {
        crate::verbose!(env, "cannot update sockmap in this context\n");
    }
    is_allowed
}
