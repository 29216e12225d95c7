//! Calls out of a program, found by number.

use crate::Surroundings;
use spec::calls::{
    GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, KTIME_GET_BOOT_NS, KTIME_GET_COARSE_NS, KTIME_GET_NS,
    NETLINK_ATTRIBUTE, NETLINK_NESTED_ATTRIBUTE, PAYLOAD_OFFSET,
};

/// A function that programs can call: `r1` to `r5`, then the world; the answer
/// is `r0`.
///
/// The platform's C convention on purpose: native code then calls it with its
/// arguments where they are, and only adds the sixth.
pub type Call = extern "C" fn(u64, u64, u64, u64, u64, &mut Surroundings<'_>) -> u64;

/// The function with this number; `None` when there is none.
pub fn find_call(number: i32) -> Option<Call> {
    Some(match number {
        GET_PRANDOM_U32 => get_prandom_u32,
        GET_SMP_PROCESSOR_ID => get_smp_processor_id,
        KTIME_GET_NS | KTIME_GET_BOOT_NS | KTIME_GET_COARSE_NS => ktime_get_ns,
        PAYLOAD_OFFSET => payload_offset,
        NETLINK_ATTRIBUTE => netlink_attribute,
        NETLINK_NESTED_ATTRIBUTE => netlink_nested_attribute,
        _ => return None,
    })
}

extern "C" fn get_prandom_u32(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    world: &mut Surroundings<'_>,
) -> u64 {
    world.random.next_u32().into()
}

extern "C" fn get_smp_processor_id(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    world: &mut Surroundings<'_>,
) -> u64 {
    world.packet.meta().cpu.into()
}

extern "C" fn ktime_get_ns(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    world: &mut Surroundings<'_>,
) -> u64 {
    match &mut world.clock {
        Some(clock) => clock.nanoseconds(),
        None => 0,
    }
}

extern "C" fn payload_offset(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    world: &mut Surroundings<'_>,
) -> u64 {
    packet::payload_offset(world.packet).into()
}

extern "C" fn netlink_attribute(
    _: u64,
    from: u64,
    kind: u64,
    _: u64,
    _: u64,
    world: &mut Surroundings<'_>,
) -> u64 {
    packet::netlink_attribute(world.packet.data(), from as u32, kind as u32).into()
}

extern "C" fn netlink_nested_attribute(
    _: u64,
    at: u64,
    kind: u64,
    _: u64,
    _: u64,
    world: &mut Surroundings<'_>,
) -> u64 {
    packet::netlink_nested_attribute(world.packet.data(), at as u32, kind as u32).into()
}
