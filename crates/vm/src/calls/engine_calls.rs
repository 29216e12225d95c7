//! The helpers that engines implement, by number.
//!
//! [`find_call`] is total: a number that no helper has gives `None`, so that a program
//! with such a call is refused before it runs.

use crate::RunContext;
use crate::bit_operation::bit_operation;
use spec::bits::BitOp;
use spec::calls::{
    GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, KTIME_GET_BOOT_NS, KTIME_GET_COARSE_NS, KTIME_GET_NS,
    NETLINK_ATTRIBUTE, NETLINK_NESTED_ATTRIBUTE, PAYLOAD_OFFSET,
};

/// A helper: its arguments are `r1` to `r5` and the run context, its result is `r0`.
///
/// It has the platform's C calling convention, so that native code passes the five
/// arguments in the registers that hold them.
///
/// # Safety
/// The arguments are as the helper's prototype requires, and pointers among them are valid.
pub type Call = unsafe extern "C" fn(u64, u64, u64, u64, u64, &mut RunContext<'_>) -> u64;

/// The helper with this number; `None` if there is none.
pub fn find_call(number: i32) -> Option<Call> {
    Some(match number {
        GET_PRANDOM_U32 => get_prandom_u32,
        GET_SMP_PROCESSOR_ID => get_smp_processor_id,
        KTIME_GET_NS | KTIME_GET_BOOT_NS | KTIME_GET_COARSE_NS => ktime_get_ns,
        PAYLOAD_OFFSET => payload_offset,
        NETLINK_ATTRIBUTE => netlink_attribute,
        NETLINK_NESTED_ATTRIBUTE => netlink_nested_attribute,
        _ => return BitOp::from_number(number).map(bit_operation),
    })
}

/// Defines helpers by their arguments `r2` and `r3` and the run context.
macro_rules! helpers {
    ($($name:ident($r2:pat_param, $r3:pat_param, $cx:ident) $result:expr;)*) => {
        $(extern "C" fn $name(
            _: u64,
            $r2: u64,
            $r3: u64,
            _: u64,
            _: u64,
            $cx: &mut RunContext<'_>,
        ) -> u64 {
            $result
        })*
    };
}

helpers! {
    get_prandom_u32(_, _, cx) cx.random.next_u32().into();
    get_smp_processor_id(_, _, cx) cx.cpu().into();
    ktime_get_ns(_, _, cx) cx.nanoseconds();
    payload_offset(_, _, cx) packet::payload_offset(cx.packet).into();
    netlink_attribute(from, kind, cx)
        packet::netlink_attribute(cx.packet.data(), from as u32, kind as u32).into();
    netlink_nested_attribute(at, kind, cx)
        packet::netlink_nested_attribute(cx.packet.data(), at as u32, kind as u32).into();
}
