//! Programs that cannot attach to their target.

use spec::programs::{AttachType, HookKind, ProgramType};

use super::Finding;
use crate::reason::cause::{Cause, TargetFault};
use crate::reason::scene::Scene;
use crate::rejection::{Program, Rejection};

/// Why the program cannot attach to its target.
pub(super) fn target(scene: &Scene<'_>) -> Finding {
    let Rejection::Program(rejection) = &*scene.refusal.rejection else {
        return Finding::new(Cause::AttachTarget(TargetFault::Other));
    };
    let attach = AttachType::from_number(scene.input.program.expected_attach_type());
    let is_multi = HookKind::of(attach) == HookKind::Multi;
    let fault = match rejection {
        // A kernel without such attach types asks for a single function.
        Program::NoAttachBtfId | Program::NotSleepableType
            if scene.input.program.kind() == ProgramType::Tracing && is_multi =>
        {
            TargetFault::Release
        }
        rejection => fault(rejection),
    };
    Finding::new(Cause::AttachTarget(fault))
}

fn fault(rejection: &Program) -> TargetFault {
    match rejection {
        Program::NotSleepable { name } => TargetFault::Sleeps(name.clone()),
        Program::NotSleepableType => TargetFault::SleepingType,
        Program::SleepableOnly => TargetFault::SleepsAlways,
        Program::NotModifiable { name } => TargetFault::NotModifiable(name.clone()),
        Program::ModifiesReturn => TargetFault::NotModifiable(String::from("the program")),
        Program::NoreturnTarget { name } => TargetFault::NeverReturns(name.clone()),
        Program::DeniedTarget { name } => TargetFault::Denied(name.clone()),
        Program::DisabledHook { name, .. } => TargetFault::Hook(name.clone()),
        Program::UnsupportedMember { name, structure } => TargetFault::Operation {
            member: name.clone(),
            structure: structure.clone(),
        },
        Program::NotOperation { member, name, .. } => TargetFault::Operation {
            member: member.clone(),
            structure: name.clone(),
        },
        Program::ReplacesStatic => TargetFault::Static(String::from("the function")),
        Program::NotGlobal { name } => TargetFault::Static(name.clone()),
        Program::NoTargetFunction { name } => TargetFault::NoFunction(name.clone()),
        Program::ReplacesKernel => TargetFault::ReplacesKernel,
        Program::ReplacementChangesPacket => TargetFault::ChangesPacket,
        Program::ReplacementSleeps => TargetFault::ReplacementSleeps,
        Program::ParameterCount {
            count, their_count, ..
        } => TargetFault::ParameterCount(*count, *their_count),
        Program::ParameterKind {
            index,
            kind,
            their_kind,
            ..
        } => parameter(*index, kind, their_kind),
        Program::ParameterSize {
            index,
            size,
            their_size,
            ..
        } => parameter(
            *index,
            &format!("{size} bytes wide"),
            &format!("{their_size} bytes wide"),
        ),
        Program::ParameterContext {
            index,
            context,
            their_context,
            ..
        } => parameter(
            *index,
            &format!("struct {context} *"),
            &format!("struct {their_context} *"),
        ),
        Program::ParameterNotContext { index, .. } => parameter(*index, "a pointer", "the context"),
        Program::ParameterUnrecognized { index, .. } => parameter(
            *index,
            "of a type that is no number and no pointer",
            "a number or a pointer",
        ),
        Program::ReturnKind {
            kind, their_kind, ..
        } => TargetFault::Result {
            found: kind.clone(),
            wanted: their_kind.clone(),
        },
        Program::NestedTracing | Program::RecursiveAttach | Program::ExtendsTracing => {
            TargetFault::Nested
        }
        Program::NoAttachBtfId => TargetFault::Missing,
        Program::UnknownAttachType { .. } | Program::UnknownType { .. } => TargetFault::Release,
        _ => TargetFault::Other,
    }
}

fn parameter(index: i64, found: &str, wanted: &str) -> TargetFault {
    TargetFault::Parameter {
        number: index + 1,
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    }
}
