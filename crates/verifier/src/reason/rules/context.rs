//! Accesses to the context that the program type does not have.

use spec::registry::{CtxQuery, Widths};

use super::Finding;
use crate::attach::{AttachedFunction, ContextEntry};
use crate::call::prototype::type_text;
use crate::reason::cause::{ArgumentFault, Cause, ContextFault};
use crate::reason::describe;
use crate::reason::scene::Scene;

/// An access to the context that the program type does not have.
pub(super) fn access(scene: &Scene<'_>) -> Option<Finding> {
    let access = scene.access()?;
    let state = *scene.reg(access.base)?;
    let off = describe::fixed_offset(&state) + i64::from(access.off);
    let size = access.size.bytes();
    let is_write = access.writes;
    let structure = scene.input.context.kind.context().map(str::to_owned);
    let of_function = || arguments(scene, off, size, is_write);
    let fault = match structure {
        None => of_function(),
        Some(_) => None,
    };
    let cause = Cause::Context {
        off,
        size,
        is_write,
        field: scene.context_field(off),
        fault: fault.unwrap_or_else(|| context_fault(scene, off, size, is_write)),
        structure,
    };
    Some(Finding {
        subjects: vec![access.base],
        ..Finding::new(cause)
    })
}

/// The fault of an access to the arguments of the function that the program is attached to.
fn arguments(scene: &Scene<'_>, off: i64, size: u32, is_write: bool) -> Option<ContextFault> {
    let function = AttachedFunction::of(scene.input)?;
    let at = i32::try_from(off).ok().filter(|off| *off >= 0)?;
    let mut arguments = Vec::new();
    while let ContextEntry::Argument(ty, name) = function.entry(arguments.len()) {
        let ty = type_text(function.btf, ty);
        let gap = if ty.ends_with('*') { "" } else { " " };
        arguments.push(format!("{ty}{gap}{}", name.to_string_lossy()));
    }
    let count = arguments.len();
    let index = function.index_at(at);
    let fault = match function.entry(index) {
        _ if is_write => ArgumentFault::ReadOnly(index + 1),
        _ if at % 8 != 0 => ArgumentFault::Misaligned(index + 1),
        ContextEntry::Argument(..) if size != 8 && arguments[index].contains('*') => {
            ArgumentFault::Width(index + 1)
        }
        ContextEntry::Argument(..) => ArgumentFault::Kind(index + 1),
        ContextEntry::Returned(_) | ContextEntry::Unknown(_) | ContextEntry::Nothing => {
            ArgumentFault::Missing(index.max(count) + 1)
        }
    };
    Some(ContextFault::Arguments {
        function: function.name.into_owned(),
        arguments,
        fault,
    })
}

fn context_fault(scene: &Scene<'_>, off: i64, size: u32, is_write: bool) -> ContextFault {
    let Ok(offset) = i32::try_from(off) else {
        return ContextFault::Outside;
    };
    let registry = scene.input.registry;
    let allows = |program: &spec::registry::ProgramContext<'_>, size, write| {
        let query = CtxQuery {
            offset,
            size,
            write,
            signed: false,
        };
        registry.ctx_access(program, query).is_ok()
    };
    let own = &scene.input.context;
    if is_write && allows(own, size, false) {
        return ContextFault::ReadOnly;
    }
    let widths: Vec<u32> = [1, 2, 4, 8]
        .into_iter()
        .filter(|&size| Widths::of(size).0 != 0 && allows(own, size, is_write))
        .collect();
    if !widths.is_empty() {
        return ContextFault::Width(widths);
    }
    let name = scene.input.context.kind.context();
    if scene
        .context_size()
        .is_some_and(|bytes| off < 0 || off >= i64::from(bytes))
    {
        return ContextFault::Outside;
    }
    let mut types: Vec<&'static str> = Vec::new();
    for &(kind, attach) in registry.programs.keys() {
        if name.is_none() || kind.context() != name || kind == own.kind {
            continue;
        }
        let other = spec::registry::ProgramContext {
            kind,
            attach,
            ..*own
        };
        if allows(&other, size, is_write) && !types.contains(&kind.name()) {
            types.push(kind.name());
        }
    }
    match types.is_empty() {
        true => ContextFault::Never,
        false => ContextFault::OtherTypes(types),
    }
}
