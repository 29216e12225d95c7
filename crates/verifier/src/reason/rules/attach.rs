//! Programs that cannot attach to their target.

use super::Finding;
use crate::reason::cause::{Cause, TargetFault};
use crate::reason::scene::Scene;
use crate::rejection::{Program, Rejection};

/// Why the program cannot attach to its target.
pub(super) fn target(scene: &Scene<'_>) -> Finding {
    let Rejection::Program(rejection) = &*scene.refusal.rejection else {
        return Finding::new(Cause::AttachTarget(TargetFault::Other));
    };
    Finding::new(Cause::AttachTarget(match rejection {
        Program::NotSleepable { .. } => TargetFault::Sleeps,
        Program::NotModifiable { .. } | Program::ModifiesReturn => TargetFault::NotModifiable,
        Program::NoreturnTarget { .. } => TargetFault::NeverReturns,
        Program::DisabledHook { .. } => TargetFault::Hook,
        Program::UnsupportedMember { .. } | Program::NotOperation { .. } => TargetFault::Operation,
        Program::ReplacesStatic | Program::NotGlobal { .. } => TargetFault::Static,
        Program::ReplacementChangesPacket => TargetFault::ChangesPacket,
        Program::ReplacementSleeps => TargetFault::ReplacementSleeps,
        Program::ParameterCount { .. }
        | Program::ParameterKind { .. }
        | Program::ParameterSize { .. }
        | Program::ParameterContext { .. }
        | Program::ParameterNotContext { .. }
        | Program::ParameterUnrecognized { .. }
        | Program::ReturnKind { .. } => TargetFault::Prototype,
        _ => TargetFault::Other,
    }))
}
