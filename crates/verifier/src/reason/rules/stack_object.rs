//! Dynptrs, iterators and saved IRQ flags on the stack.

use isa::ebpf::Reg;

use super::Finding;
use crate::reason::cause::{Cause, StackObjectFault as Fault};
use crate::reason::scene::Scene;
use crate::rejection::{Call, Rejection};

const DYNPTR: &str = "a dynptr";
const ITERATOR: &str = "an iterator";
const FLAGS: &str = "IRQ flags";

/// The fault of an object on the stack, if the refusal is about one.
pub(super) fn find(scene: &Scene<'_>) -> Option<Finding> {
    let Rejection::Call(rejection) = &*scene.refusal.rejection else {
        return None;
    };
    let (object, index, fault) = fault(rejection)?;
    let reg = index.and_then(|index| Reg::new(index as u8 + 1));
    let cause = Cause::StackObject {
        callee: scene.callee(),
        number: reg.map(Reg::number),
        object,
        fault,
    };
    Some(match reg {
        Some(reg) => Finding::about(scene, cause, &[reg]),
        None => Finding::new(cause),
    })
}

/// Name of the object, index of the argument and fault.
fn fault(rejection: &Call) -> Option<(&'static str, Option<i64>, Fault)> {
    Some(match rejection {
        Call::DynptrNotUninit => (DYNPTR, None, Fault::NotFree),
        Call::DynptrConst | Call::ReleasesConstDynptr => (DYNPTR, None, Fault::Constant),
        Call::DynptrNotInit { index } => (DYNPTR, Some(*index), Fault::NotMade),
        Call::DynptrOther { kind, index } => (DYNPTR, Some(*index), Fault::NotOfKind(kind.clone())),
        Call::ExpectsDynptr { index } => (DYNPTR, Some(*index), Fault::NotOnStack),
        Call::DynptrMemory { kind } => (DYNPTR, Some(0), Fault::Memory(kind.to_string())),
        Call::UnacquiredDynptr { number } => (DYNPTR, Some(*number - 1), Fault::NotHeld),
        Call::OverwritesDynptr => (DYNPTR, None, Fault::Overwritten),
        Call::NotIterator { index } => (ITERATOR, Some(*index), Fault::NotOnStack),
        Call::IteratorNotUninit { index, .. } => (ITERATOR, Some(*index), Fault::NotFree),
        Call::IteratorNotInit { index, .. } => (ITERATOR, Some(*index), Fault::NotMade),
        Call::IteratorOutsideRcu { .. } => (ITERATOR, Some(0), Fault::OutsideRcu),
        Call::NotIrqFlag { index } => (FLAGS, Some(*index), Fault::NotOnStack),
        Call::IrqFlagNotUninit { index } => (FLAGS, Some(*index), Fault::NotFree),
        Call::IrqFlagNotInit { index } => (FLAGS, Some(*index), Fault::NotMade),
        Call::IrqFlagClass { .. } => (FLAGS, None, Fault::OtherCalls),
        Call::IrqFlagOrder { .. } => (FLAGS, None, Fault::Order),
        _ => return None,
    })
}
