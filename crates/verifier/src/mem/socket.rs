//! Fields of sockets that helpers return (net/core/filter.c): `struct bpf_sock`,
//! `struct bpf_tcp_sock`, `struct bpf_xdp_sock`, by the registry.

use spec::registry::CtxQuery;

use super::MemAccess;
use crate::Result;
use crate::env::VerifierEnv;

/// Checks a read at `off` of a socket, the pointer's offset included (`check_sock_access`).
pub(super) fn check_sock_access(
    env: &mut VerifierEnv<'_>,
    access: MemAccess,
    off: i32,
) -> Result<()> {
    let reg = *env.reg(access.ptr);
    if reg.num.smin < 0 {
        return Err(refuse!(env => Mem::NegativeIndex { reg: access.ptr }));
    }
    let size = access.size;
    let query = CtxQuery {
        offset: off,
        size,
        write: false,
        signed: access.signed,
    };
    if env.input.registry.reads_socket(reg.kind.base(), query) {
        return Ok(());
    }
    let kind = reg.reg_type();
    Err(refuse!(env => Mem::Socket { reg: access.ptr, kind, off, size }))
}
