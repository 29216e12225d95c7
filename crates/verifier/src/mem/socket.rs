//! Fields of sockets that helpers return (net/core/filter.c): `struct bpf_sock`,
//! `struct bpf_tcp_sock`, `struct bpf_xdp_sock`.

use isa::ebpf::Reg;

use super::names::type_name;
use crate::Result;
use crate::state::RegKind;
use crate::walk::Walk;

/// Checks a read of `size` bytes at `off` of a socket (`check_sock_access`).
pub(super) fn check_access(walk: &mut Walk<'_>, ptr: Reg, off: i32, size: u32) -> Result<()> {
    let reg = *walk.reg(ptr);
    let number = ptr.number();
    if reg.num.smin < 0 {
        return Err(refuse!(
            walk,
            EACCES,
            Unbounded,
            "R{number} min value is negative, either use unsigned index or do a if (index >=0) check."
        ));
    }
    let is_valid = match reg.kind {
        RegKind::Socket => is_sock_field(off, size),
        RegKind::SockCommon => !(8..24).contains(&off) && is_sock_field(off, size),
        RegKind::TcpSock => is_tcp_field(off, size),
        RegKind::XdpSock => off == 0 && size == 4,
        _ => false,
    };
    if is_valid {
        return Ok(());
    }
    let name = type_name(&reg);
    Err(refuse!(
        walk,
        EACCES,
        OutOfBounds,
        "R{number} invalid {name} access off={off} size={size}"
    ))
}

/// True for a readable field of `struct bpf_sock` (`bpf_sock_is_valid_access`).
fn is_sock_field(off: i32, size: u32) -> bool {
    if !(0..80).contains(&off) || !(off as u32).is_multiple_of(size) {
        return false;
    }
    match off {
        // state, family, type, protocol, src_port, rx_queue_mapping, and the addresses
        4 | 8 | 12 | 44 | 72 | 76 | 24..44 | 52..72 => size <= 4,
        // dst_port: two bytes in the network's order, or four with zeros behind them
        48..50 => size <= 2 || size == 4,
        50..52 => false,
        _ => size == 4,
    }
}

/// True for a readable field of `struct bpf_tcp_sock` (`bpf_tcp_sock_is_valid_access`).
fn is_tcp_field(off: i32, size: u32) -> bool {
    if !(0..112).contains(&off) || !(off as u32).is_multiple_of(size) {
        return false;
    }
    match off {
        // bytes_received, bytes_acked
        80 | 88 => size == 8,
        _ => size == 4,
    }
}
