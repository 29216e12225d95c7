//! Load flags, program type and expected attach type, as far as the kernel looks at them before it
//! verifies (`bpf_prog_load`): its log stays empty.

use spec::programs::{AttachType, HookKind, LoadFlags, ProgramType};
use spec::since::{Release, Since};

use super::unknown_attach_type;
use crate::input::Input;
use crate::rejection::Program;
use crate::release::Requirement;
use crate::type_rules::{AttachTypes, TypeRules};
use crate::{RULES, Result, Stop};

/// Checks that the kernel knows the load flags.
pub(crate) fn check_flags(input: &Input<'_>) -> Result<()> {
    let flags = input.program.flags();
    for (name, since) in flags.since() {
        require(input, since, Requirement::LoadFlag(name))?;
    }
    match flags.unknown().0 {
        // No program here has a descriptor of a token.
        0 if flags.has(LoadFlags::TOKEN_FD) => Err(Stop::refusal(Program::NoToken, None)),
        0 => Ok(()),
        bits => Err(Stop::refusal(Program::UnknownLoadFlags { bits }, None)),
    }
}

/// Checks that the kernel has programs of the type, with the attach type that this one states
/// (`bpf_prog_load_check_attach`, `find_prog_type`).
#[doc(alias = "bpf_prog_load_check_attach")]
#[doc(alias = "find_prog_type")]
pub(crate) fn check_type(input: &Input<'_>) -> Result<()> {
    let kind = input.program.kind();
    require(input, kind.since(), Requirement::ProgramType(kind))?;
    let number = input.program.expected_attach_type();
    let attach = super::effective_attach_type(kind, number);
    check_attach_type(input, kind, attach, number)?;
    let mut known = input.registry.programs.keys();
    if known.any(|(known, _)| *known == kind) {
        return Ok(());
    }
    let name = kind.name();
    Err(match input.has_own_registry {
        true => Stop::refusal(
            Program::UnknownType {
                name: name.to_owned(),
            },
            None,
        ),
        false => Stop::unsupported(format!("programs of type {name}")),
    })
}

fn check_attach_type(
    input: &Input<'_>,
    kind: ProgramType,
    attach: Option<AttachType>,
    number: u32,
) -> Result<()> {
    let of_many = attach.filter(|attach| attach.hook() == HookKind::Multi);
    let is_of_many = of_many.is_some_and(|attach| !is_newer(input, attach.since()));
    if is_of_many && kind != ProgramType::Tracing {
        return Err(unknown_attach_type(number));
    }
    let is_listed = match TypeRules::of(kind).attach_types {
        AttachTypes::Any | AttachTypes::OfTarget => return Ok(()),
        AttachTypes::None => number == 0,
        // Kernels without the first of the list look at no number.
        AttachTypes::Listed(list) => {
            if list
                .first()
                .is_some_and(|first| is_newer(input, first.since()))
            {
                return Ok(());
            }
            attach.is_some_and(|attach| list.contains(&attach))
        }
    };
    if !is_listed {
        return Err(unknown_attach_type(number));
    }
    match attach.filter(|_| number != 0) {
        Some(attach) => require(input, attach.since(), Requirement::AttachType(attach)),
        None => Ok(()),
    }
}

/// Release of the kernel.
fn release(input: &Input<'_>) -> Release {
    input.kernel_release.unwrap_or(RULES)
}

fn is_newer(input: &Input<'_>, since: Since) -> bool {
    since.release > release(input)
}

/// Requires what a release brought.
fn require(input: &Input<'_>, since: Since, what: Requirement) -> Result<()> {
    if !is_newer(input, since) {
        return Ok(());
    }
    let rejection = Program::ReleaseLacks {
        what,
        since: since.release,
        kernel: release(input),
    };
    Err(Stop::refusal(rejection, None))
}
