//! Alignment of accesses. x86-64 allows unaligned ones, so only the stack, atomics and
//! programs loaded with BPF_F_STRICT_ALIGNMENT are bound to it.

use crate::Result;
use crate::domain::Tnum;
use crate::input::Input;
use crate::log::Sink;
use crate::state::{Alignment, RegKind, RegRules, RegState, TypeFlags};

/// Bytes before a packet's network header that strict alignment assumes
/// (`NET_IP_ALIGN`).
pub(crate) const IP_ALIGN: i64 = 2;

/// Checks that an access of `size` bytes at `reg + off` is aligned
/// (`check_ptr_alignment`).
pub(crate) fn check_ptr_alignment(
    input: &Input<'_>,
    log: &mut Sink<'_>,
    reg: &RegState,
    off: i32,
    size: u32,
    is_strict: bool,
) -> Result<()> {
    let rules = RegRules::of(reg.kind.base());
    let (alignment, what) = match reg.flags {
        TypeFlags::NONE => (rules.alignment, rules.alignment_label),
        _ => (Alignment::Asked, ""),
    };
    let of_table =
        matches!(reg.kind, RegKind::MapValue { map, .. } if input.maps[map].is_jump_table());
    let is_asked = is_strict || of_table || input.strict_alignment;
    let is_strict = match alignment {
        Alignment::Asked => is_asked,
        Alignment::Packet => return check_packet(log, reg, off, size, is_asked),
        Alignment::Always => true,
        Alignment::Never => false,
    };
    if !is_strict || size == 1 {
        return Ok(());
    }
    let fixed = i64::from(reg.off) + i64::from(off);
    if is_aligned(reg, fixed, size) {
        return Ok(());
    }
    let (var_off, reg_off) = (reg.num.var_off, reg.off);
    Err(refuse!(log => Mem::Misaligned { what, var_off, reg_off, off, size }))
}

/// Checks the alignment of an access to a packet (`check_pkt_ptr_alignment`).
#[doc(alias = "check_pkt_ptr_alignment")]
fn check_packet(
    log: &mut Sink<'_>,
    reg: &RegState,
    off: i32,
    size: u32,
    is_strict: bool,
) -> Result<()> {
    if !is_strict || size == 1 {
        return Ok(());
    }
    let fixed = IP_ALIGN + i64::from(reg.off) + i64::from(off);
    if is_aligned(reg, fixed, size) {
        return Ok(());
    }
    let (var_off, reg_off) = (reg.num.var_off, reg.off);
    Err(refuse!(log => Mem::MisalignedPacket { var_off, reg_off, off, size }))
}

/// True if every offset is a multiple of the size (`check_generic_ptr_alignment`).
#[doc(alias = "check_generic_ptr_alignment")]
fn is_aligned(reg: &RegState, fixed: i64, size: u32) -> bool {
    let sum = reg.num.var_off.add(Tnum::constant(fixed as u64));
    sum.is_aligned(size.into())
}
