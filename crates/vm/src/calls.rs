//! Calls out of a program, found by number.

use crate::Surroundings;
use spec::calls::{
    GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, NETLINK_ATTRIBUTE, NETLINK_NESTED_ATTRIBUTE,
    PAYLOAD_OFFSET,
};

/// A function that programs can call: its arguments are `r1` to `r5`.
pub type Call = fn(&mut Surroundings<'_>, [u64; 5]) -> u64;

/// The function with this number; `None` when there is none.
pub fn find_call(number: i32) -> Option<Call> {
    Some(match number {
        GET_PRANDOM_U32 => |world, _| u64::from(world.random.next_u32()),
        GET_SMP_PROCESSOR_ID => |world, _| u64::from(world.packet.meta().cpu),
        PAYLOAD_OFFSET => |world, _| u64::from(packet::payload_offset(world.packet)),
        NETLINK_ATTRIBUTE => |world, [_, from, kind, ..]| {
            u64::from(packet::netlink_attribute(
                world.packet.data(),
                from as u32,
                kind as u32,
            ))
        },
        NETLINK_NESTED_ATTRIBUTE => |world, [_, at, kind, ..]| {
            u64::from(packet::netlink_nested_attribute(
                world.packet.data(),
                at as u32,
                kind as u32,
            ))
        },
        _ => return None,
    })
}
