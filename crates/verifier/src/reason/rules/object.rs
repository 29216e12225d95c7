//! Allocated objects, lists, trees, kptrs and the fields that calls take the address of.

use isa::ebpf::Reg;

use super::Finding;
use crate::reason::cause::{Cause, ObjectFault as Fault};
use crate::reason::scene::Scene;
use crate::rejection::{Call, Mem, Rejection};

/// The fault of an object, if the refusal is about one.
pub(super) fn find(scene: &Scene<'_>) -> Option<Finding> {
    let (index, fault) = fault(&scene.refusal.rejection)?;
    let reg = index.and_then(|index| Reg::new(index as u8 + 1));
    let cause = Cause::AllocatedObject {
        callee: scene.callee(),
        number: reg.map(Reg::number),
        fault,
    };
    Some(match reg {
        Some(reg) => Finding::about(scene, cause, &[reg]),
        None => Finding::new(cause),
    })
}

/// Index of the argument, and the fault.
fn fault(rejection: &Rejection) -> Option<(Option<i64>, Fault)> {
    let rejection = match rejection {
        Rejection::Call(rejection) => rejection,
        Rejection::Mem(Mem::ObjectSpecialField { name }) => {
            return Some((None, Fault::SpecialField(name.clone())));
        }
        _ => return None,
    };
    Some(match rejection {
        Call::NotAllocated { index }
        | Call::ForObjDrop { index }
        | Call::ForPercpuObjDrop { index }
        | Call::NotRootOwner { index }
        | Call::NotLockOwner { index }
        | Call::NeitherOwning { index } => (Some(*index), Fault::NotOwned),
        Call::ObjectNotReferenced | Call::NodeNotOwned { .. } => (None, Fault::NotOwned),
        Call::WithoutRefcount { index } => (Some(*index), Fault::WithoutCount),
        Call::FieldNotFound { name, .. } | Call::FieldAbsentInObject { name } => {
            (None, Fault::NoField(name.clone()))
        }
        Call::NoKptr { .. } | Call::NotAtKptr { .. } | Call::KptrNotReferenced { .. } => {
            (Some(0), Fault::NoField(String::from("kptr")))
        }
        Call::LockNotHeld { name, .. } => (Some(0), Fault::LockNotHeld(name.clone())),
        Call::LockAgain => (Some(0), Fault::LockedTwice),
        Call::OtherNode { node, wanted, .. } | Call::NodeOffset { node, wanted, .. } => {
            let node = format!("{node} of struct {wanted}");
            (Some(1), Fault::OtherNode(node))
        }
        Call::LockInCallback | Call::NotInCallback { .. } | Call::SectionInCallback => {
            (None, Fault::InCallback)
        }
        Call::LocalTypeRange
        | Call::AllocatesWithoutBtf
        | Call::AllocatesNoStruct
        | Call::PercpuTooLarge { .. }
        | Call::PercpuNotScalars
        | Call::PercpuSpecialFields => (Some(0), Fault::NotAllocatable),
        Call::NotMapValue { index } => (Some(*index), Fault::NotInValue),
        Call::WorkqueueOfOtherMap { .. } => (Some(1), Fault::OtherMap),
        Call::TaskWorkOfOtherMap { .. } => (Some(2), Fault::OtherMap),
        _ => return None,
    })
}
