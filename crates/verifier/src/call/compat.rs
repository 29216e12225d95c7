//! Compatibility of helpers and map kinds, by the registry (`check_map_func_compatibility`).

use spec::helpers::HelperId;
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
    let Some(kind) = env.input.maps[map].kind() else {
        return Ok(());
    };
    let is_taken = match proto.helper() {
        Some(helper @ (HelperId::MapUpdateElem | HelperId::MapDeleteElem))
            if kind.holds_sockets() =>
        {
            may_change_sockmap(env, helper)
        }
        _ => {
            let traits = env.input.registry.map(kind);
            traits.is_none_or(|traits| traits.allows_helper(proto.id))
        }
    };
    if is_taken {
        return Ok(());
    }
    Err(refuse!(env => Call::MapForHelper { kind, name: &proto.name, id: proto.id }))
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
