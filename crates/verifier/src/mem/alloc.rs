//! Objects that programs allocate: reads and writes of what is no special field
//! (`check_ptr_to_btf_access`, `btf_struct_access`).

use btf::FoundAt;
use spec::behaviour::Behaviour;

use super::object::find_at;
use super::registers::{set_pointer, set_unknown};
use super::{Access, MemAccess};
use crate::Result;
use crate::env::Check;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};

/// Checks an access at `off` to an object of a type of the program, the pointer's fixed offset
/// included (`btf_struct_access`).
#[doc(alias = "btf_struct_access")]
pub(super) fn check_object_access(
    env: &mut Check<'_>,
    access: MemAccess,
    ty: TypeRef,
    off: i32,
) -> Result<()> {
    let reg = *env.reg(access.ptr);
    let is_write = access.access == Access::Write;
    if is_write && (reg.flags.has(TypeFlags::PTR_UNTRUSTED) || !reg.is_allocated()) {
        return Err(refuse!(env => Mem::ObjectWrite));
    }
    let is_protected = reg.is_non_owning() || reg.flags.has(TypeFlags::MEM_RCU);
    if reg.is_allocated() && !is_protected && reg.ref_obj_id == 0 {
        return Err(refuse!(env => Mem::ObjectWithoutReference));
    }
    if reg.is_allocated() {
        check_fields(env, ty, off, access.size)?;
    }
    let found = find_at(env, ty, off, access.size)?;
    let Some(value) = access.value.filter(|_| !is_write) else {
        return Ok(());
    };
    match found {
        FoundAt::OtherPointer if env.input.rules.has(Behaviour::LeavesAreMemory) => {
            let flags = TypeFlags::MEM_RDONLY.with(TypeFlags::PTR_UNTRUSTED);
            set_pointer(env, value, RegKind::memory(0), flags);
        }
        // What the program stored there is a number.
        FoundAt::Pointer { .. } if reg.is_allocated() => set_unknown(env, value),
        FoundAt::Pointer { id, .. } => {
            let kind = RegKind::BtfId {
                ty: TypeRef { id: id.0, ..ty },
            };
            *env.reg_mut(value) = RegState::pointer(kind, TypeFlags::PTR_UNTRUSTED);
        }
        FoundAt::Scalar | FoundAt::OtherPointer => set_unknown(env, value),
    }
    Ok(())
}

/// Refuses accesses that touch a special field.
fn check_fields(env: &mut Check<'_>, ty: TypeRef, off: i32, size: u32) -> Result<()> {
    let (start, end) = (off as u32, (off as u32).wrapping_add(size));
    let record = env.input.structure_fields(ty);
    let mut fields = record.iter().flat_map(|record| record.fields());
    let touched = fields.find(|field| {
        let field_end = field.offset.wrapping_add(field.kind.size());
        start < field_end && field.offset < end
    });
    match touched {
        None => Ok(()),
        Some(field) => Err(refuse!(env => Mem::ObjectSpecialField { name: field.kind })),
    }
}
