//! `struct_ops`: a structure of the kernel whose function pointers are programs. There is no
//! kernel that would call them.

use spec::Errno;

use super::Definition;

/// The kernel's rules of creation: a map needs the id of a structure among the kernel's types
/// (`btf_vmlinux_value_type_id`), which no definition here has.
pub(super) fn check(_: &Definition) -> Result<(), Errno> {
    Err(Errno::EINVAL)
}
