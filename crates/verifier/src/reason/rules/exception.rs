//! Exceptions: `bpf_throw` and the callback that catches it.

use super::Finding;
use crate::reason::cause::{Cause, ExceptionFault as Fault};
use crate::reason::scene::Scene;
use crate::rejection::{Call, Program, Rejection};

/// The fault of an exception, if the refusal is about one.
pub(super) fn find(scene: &Scene<'_>) -> Option<Finding> {
    let fault = match &*scene.refusal.rejection {
        Rejection::Program(Program::ThrowInCallback { .. }) => Fault::InCallback,
        Rejection::Program(Program::ExceptionCallbackCall { .. }) => Fault::CallbackCalled,
        Rejection::Program(Program::SeveralExceptionCallbacks) => Fault::Several,
        Rejection::Program(Program::NoExceptionCallback { name }) => Fault::Missing(name.clone()),
        Rejection::Program(Program::ExceptionCallbackStatic { name }) => {
            Fault::Static(name.clone())
        }
        Rejection::Call(Call::ExceptionCallback) => Fault::Signature,
        _ => return None,
    };
    let place = match &*scene.refusal.rejection {
        Rejection::Program(
            Program::ThrowInCallback { index, .. } | Program::ExceptionCallbackCall { index },
        ) => Some(*index as u32),
        _ => None,
    };
    let finding = Finding::new(Cause::Exception(fault));
    Some(Finding {
        place: place.map(|insn| scene.place(insn)),
        ..finding
    })
}
