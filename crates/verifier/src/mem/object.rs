//! Kernel objects by their BTF, and maps read as objects.
//!
//! What the kernel refuses whatever the type is refused here; walking the type of an
//! object is not judged yet.

use super::{Access, MemAccess};
use crate::state::{MapRef, TypeFlags, TypeRef};
use crate::walk::Walk;
use crate::{Result, Stop};

/// Checks an access to a kernel object at `off`, the pointer's fixed offset included
/// (`check_ptr_to_btf_access`).
pub(super) fn check_access(
    walk: &mut Walk<'_>,
    access: MemAccess,
    ty: TypeRef,
    off: i32,
) -> Result<()> {
    let reg = *walk.reg(access.ptr);
    let number = access.ptr.number();
    let name = walk.env.type_name(ty);
    if !walk.env.allow_ptr_leaks {
        return Err(refuse!(
            walk,
            EPERM,
            Privilege,
            "'struct {name}' access is allowed only to CAP_PERFMON and CAP_SYS_ADMIN"
        ));
    }
    if !walk.env.program.is_gpl_compatible() && ty.btf != TypeRef::PROGRAM {
        return Err(refuse!(
            walk,
            EINVAL,
            License,
            "Cannot access kernel 'struct {name}' from non-GPL compatible program"
        ));
    }
    if off < 0 {
        return Err(refuse!(
            walk,
            EACCES,
            OutOfBounds,
            "R{number} is ptr_{name} invalid negative access: off={off}"
        ));
    }
    let var_off = reg.num.var_off;
    if !var_off.equals(0) {
        return Err(refuse!(
            walk,
            EACCES,
            Unbounded,
            "R{number} is ptr_{name} invalid variable offset: off={off}, var_off={var_off}"
        ));
    }
    if reg.flags.has(TypeFlags::MEM_USER) {
        return Err(refuse!(
            walk,
            EACCES,
            Forbidden,
            "R{number} is ptr_{name} access user memory: off={off}"
        ));
    }
    if reg.flags.has(TypeFlags::MEM_PERCPU) {
        return Err(refuse!(
            walk,
            EACCES,
            Forbidden,
            "R{number} is ptr_{name} access percpu memory: off={off}"
        ));
    }
    Err(Stop::unsupported(format!(
        "access to the kernel object 'struct {name}'"
    )))
}

/// Checks a read of `struct bpf_map` (`check_ptr_to_map_access`).
pub(super) fn check_map_access(
    walk: &mut Walk<'_>,
    access: MemAccess,
    map: MapRef,
    off: i32,
) -> Result<()> {
    let number = access.ptr.number();
    let kind = walk.env.maps[map].map_type();
    let name = struct_of_map(kind);
    if !walk.env.allow_ptr_leaks {
        return Err(refuse!(
            walk,
            EPERM,
            Privilege,
            "'struct {name}' access is allowed only to CAP_PERFMON and CAP_SYS_ADMIN"
        ));
    }
    if off < 0 {
        return Err(refuse!(
            walk,
            EACCES,
            OutOfBounds,
            "R{number} is {name} invalid negative access: off={off}"
        ));
    }
    if access.access != Access::Read {
        return Err(refuse!(
            walk,
            EACCES,
            Forbidden,
            "only read from {name} is supported"
        ));
    }
    Err(Stop::unsupported(format!("fields of 'struct {name}'")))
}

/// The kernel's structure of a map of this kind (`map_btf_id`).
fn struct_of_map(kind: u32) -> &'static str {
    match kind {
        1 | 5 | 9 | 10 | 13 => "bpf_htab",
        2 | 3 | 4 | 6 | 8 | 12 => "bpf_array",
        7 => "bpf_stack_map",
        11 => "lpm_trie",
        14 | 25 => "bpf_dtab",
        15 => "bpf_stab",
        16 => "bpf_cpu_map",
        17 => "xsk_map",
        18 => "bpf_shtab",
        19 | 21 => "bpf_cgroup_storage_map",
        20 => "reuseport_array",
        22 | 23 => "bpf_queue_stack",
        24 | 28 | 29 | 32 => "bpf_local_storage_map",
        26 => "bpf_struct_ops_map",
        27 | 31 => "bpf_ringbuf_map",
        30 => "bpf_bloom_filter",
        33 => "bpf_arena",
        _ => "bpf_map",
    }
}
