//! First release of each kind of special field, and the kinds that values of maps have.

use std::collections::HashSet;

use btf::fields::FieldKind;
use btf::{Btf, Kind, Shape, TypeId};

use super::Feature;

impl Feature {
    /// Feature that a special field in values of maps requires; `None` for the nodes of lists and
    /// trees, which objects of programs have.
    pub const fn of_field(kind: FieldKind) -> Option<Feature> {
        Some(match kind {
            FieldKind::SpinLock => Feature::SpinLocks,
            FieldKind::ResSpinLock => Feature::ResilientLocks,
            FieldKind::Timer => Feature::Timers,
            FieldKind::Workqueue => Feature::WorkQueues,
            FieldKind::TaskWork => Feature::TaskWork,
            FieldKind::KptrUnref | FieldKind::KptrRef => Feature::KernelPointers,
            FieldKind::KptrPercpu => Feature::PercpuPointers,
            FieldKind::Uptr => Feature::UserPointers,
            FieldKind::ListHead => Feature::Lists,
            FieldKind::RbRoot => Feature::Trees,
            FieldKind::Refcount => Feature::Refcounts,
            FieldKind::ListNode | FieldKind::RbNode => return None,
        })
    }
}

/// Features that the special fields in values of a type require, each once: the fields that Linux
/// finds, whether or not they obey its other rules. Linear in the types that the value contains.
pub fn value_features(types: &Btf<'_>, value: TypeId) -> Vec<Feature> {
    let mut features = Vec::new();
    let value = types.skip_modifiers(value).unwrap_or(value);
    let mut waiting = vec![value];
    let mut seen = HashSet::from([value]);
    while let Some(id) = waiting.pop() {
        let ty = types.at(id);
        let mut contained = Vec::new();
        let field = match ty.shape() {
            Shape::Struct(structure) => {
                let field = FieldKind::of_structure(ty.name()).and_then(Feature::of_field);
                if field.is_none() {
                    contained.extend(structure.members().map(|member| member.ty));
                }
                field
            }
            Shape::Datasec(section) => {
                contained.extend(section.vars().map(|placed| placed.var));
                None
            }
            Shape::Array(array) => {
                contained.push(array.element);
                None
            }
            Shape::Var(var) => {
                contained.push(var.ty);
                None
            }
            Shape::Volatile(to) if types.at(to).kind() == Kind::Ptr => {
                contained.push(to);
                None
            }
            Shape::Ptr(to) if types.at(to).kind() == Kind::TypeTag => {
                FieldKind::of_tag(types.at(to).name()).and_then(Feature::of_field)
            }
            _ => None,
        };
        features.extend(field.filter(|field| !features.contains(field)));
        waiting.extend(contained.into_iter().filter(|id| seen.insert(*id)));
    }
    features
}
