//! Compatibility of helpers and map kinds, by the registry (`check_map_func_compatibility`).

use spec::helpers::HelperId;
use spec::maps::MapKind;
use spec::registry::HelperProto;

use crate::env::Check;
use crate::state::MapRef;
use crate::{Result, refuse};

/// Checks that a helper takes a map (`check_map_func_compatibility`).
pub(super) fn check_map_func_compatibility(
    env: &mut Check<'_>,
    proto: &HelperProto,
    map: Option<MapRef>,
) -> Result<()> {
    let Some(map) = map else { return Ok(()) };
    let info = &env.input.maps[map];
    let is_of_sockets = info.kind().is_some_and(MapKind::holds_sockets);
    let is_taken = match proto.helper() {
        Some(helper @ (HelperId::MapUpdateElem | HelperId::MapDeleteElem)) if is_of_sockets => {
            may_change_sockmap(env, helper)
        }
        _ => {
            let kind = info.kind().and_then(|kind| env.input.registry.map(kind));
            kind.is_none_or(|kind| kind.allows_helper(proto.id))
        }
    };
    if is_taken {
        return Ok(());
    }
    Err(refuse!(env => Call::MapForHelper {
        map_type: env.input.maps[map].def().params.map_type, name: &proto.name, id: proto.id
    }))
}

/// True if the program may change sockets in a map; says so in the log if not
/// (`may_update_sockmap`).
#[doc(alias = "may_update_sockmap")]
fn may_change_sockmap(env: &mut Check<'_>, helper: HelperId) -> bool {
    let rules = env.input.registry.rules(&env.input.context);
    let is_allowed = rules.is_some_and(|rules| match helper {
        HelperId::MapDeleteElem => rules.deletes_sockmap,
        _ => rules.updates_sockmap,
    });
    if !is_allowed {
        crate::verbose!(env.sink, "cannot update sockmap in this context\n");
    }
    is_allowed
}
