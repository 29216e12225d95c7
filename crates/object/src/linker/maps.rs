//! Compatibility of a map in two files: an extern map must have a complete declaration
//! with equal attributes and compatible keys and values.

use btf::{Btf, Shape, Type, TypeId};
use spec::loader::LoaderKind;

use super::agreement::{MapAttribute, Mismatch, Typed, check_types};
use program::MapParams;

use crate::maps::definition::{self, Declaration};

/// Compares the type that a variable of `.maps` had with that of a new file.
pub(super) fn check(before: Type<'_>, now: Type<'_>) -> Result<(), Mismatch> {
    let Shape::Var(var) = now.shape() else {
        return Err(Mismatch::Neither(now.kind()));
    };
    let is = read(now.btf(), var.ty)?;
    let was = read(before.btf(), before.id())?;
    check_definitions(before.btf(), &was.params, now.btf(), &is.params)?;
    if was.pinning != is.pinning {
        return Err(Mismatch::Map(MapAttribute::Pinning));
    }
    match (&was.inner, &is.inner) {
        (Some(was), Some(is)) => check_definitions(before.btf(), was, now.btf(), is),
        (None, None) => Ok(()),
        _ => Err(Mismatch::Map(MapAttribute::Inner)),
    }
}

fn read(btf: &Btf<'_>, ty: TypeId) -> Result<Declaration, Mismatch> {
    let ty = btf.at(btf.skip_modifiers(ty).ok_or(Mismatch::TooDeep)?);
    let structure = ty.as_composite().ok_or(Mismatch::NoMap(None))?;
    definition::read(btf, structure, (LoaderKind::Libbpf.rules(), false))
        .map_err(|fault| Mismatch::NoMap(Some(fault)))
}

fn check_definitions(
    before: &Btf<'_>,
    was: &MapParams,
    now: &Btf<'_>,
    is: &MapParams,
) -> Result<(), Mismatch> {
    use MapAttribute as Is;
    let differ = |differ: bool, attribute| match differ {
        true => Err(Mismatch::Map(attribute)),
        false => Ok(()),
    };
    differ(was.map_type != is.map_type, Is::Kind)?;
    differ(was.key_size != is.key_size, Is::KeySize)?;
    check_part(before, was.key_type, now, is.key_type, Is::KeyType)?;
    differ(was.value_size != is.value_size, Is::ValueSize)?;
    check_part(before, was.value_type, now, is.value_type, Is::ValueType)?;
    differ(was.max_entries != is.max_entries, Is::MaxEntries)?;
    differ(was.flags != is.flags, Is::Flags)?;
    differ(was.numa_node != is.numa_node, Is::NumaNode)
}

/// Checks that both have no type for keys (or values), or compatible ones.
fn check_part(
    before: &Btf<'_>,
    was: TypeId,
    now: &Btf<'_>,
    is: TypeId,
    attribute: MapAttribute,
) -> Result<(), Mismatch> {
    match (was.is_void(), is.is_void()) {
        (true, true) => Ok(()),
        (false, false) => {
            let typed = |btf, id| Typed { btf, id };
            check_types(typed(before, was), typed(now, is))
        }
        _ => Err(Mismatch::Map(attribute)),
    }
}
