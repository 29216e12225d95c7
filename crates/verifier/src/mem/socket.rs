//! Fields of sockets that helpers return (net/core/filter.c): `struct bpf_sock`,
//! `struct bpf_tcp_sock`, `struct bpf_xdp_sock`, by the registry.

use spec::registry::CtxQuery;

use super::MemAccess;
use crate::Result;
use crate::input::Input;
use crate::log::Sink;
use crate::state::RegState;

/// Checks a read at `off` of a socket, the pointer's offset included (`check_sock_access`).
pub(super) fn check_sock_access(
    input: &Input<'_>,
    log: &mut Sink<'_>,
    reg: &RegState,
    access: MemAccess,
    off: i32,
) -> Result<()> {
    refuse_if!(reg.num.smin < 0, log => Mem::NegativeIndex { reg: access.ptr });
    let size = access.size;
    let query = CtxQuery {
        offset: off,
        size,
        write: false,
        signed: access.signed,
    };
    if input.registry.reads_socket(reg.kind.base(), query) {
        return Ok(());
    }
    let kind = reg.reg_type();
    Err(refuse!(log => Mem::Socket { reg: access.ptr, kind, off, size }))
}
