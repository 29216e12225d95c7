//! Fields of sockets that helpers return (net/core/filter.c): `struct bpf_sock`,
//! `struct bpf_tcp_sock`, `struct bpf_xdp_sock`, by the registry.

use spec::registry::CtxQuery;

use super::MemAccess;
use crate::Result;
use crate::log::reg_type_str;
use crate::walk::Walk;

/// Checks a read at `off` of a socket, the pointer's offset included (`check_sock_access`).
#[doc(alias = "check_sock_access")]
pub(super) fn check_access(walk: &mut Walk<'_>, access: MemAccess, off: i32) -> Result<()> {
    let reg = *walk.reg(access.ptr);
    let number = access.ptr.number();
    if reg.num.smin < 0 {
        return Err(refuse!(
            walk,
            EACCES,
            Unbounded,
            "R{number} min value is negative, either use unsigned index or do a if (index >=0) check."
        ));
    }
    let size = access.size;
    let query = CtxQuery {
        offset: off,
        size,
        write: false,
        signed: access.signed,
    };
    if walk.env.registry.reads_socket(reg.kind.base(), query) {
        return Ok(());
    }
    let name = reg_type_str(reg.reg_type());
    Err(refuse!(
        walk,
        EACCES,
        OutOfBounds,
        "R{number} invalid {name} access off={off} size={size}"
    ))
}
