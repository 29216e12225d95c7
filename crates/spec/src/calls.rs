//! Numbers of calls: helpers of Linux that need nothing but ports to the outside,
//! and the calls that converted classic filters make.
//!
//! Of the latter, two are ordinary helpers. The others stand for functions that
//! the kernel's own conversion calls by address and that no eBPF program can
//! name; they live in a private range above every helper number.

use crate::helpers;

/// `u64 bpf_ktime_get_ns(void)`: a helper of Linux.
pub const KTIME_GET_NS: i32 = helper("bpf_ktime_get_ns");
/// `u64 bpf_ktime_get_boot_ns(void)`: a helper of Linux.
pub const KTIME_GET_BOOT_NS: i32 = helper("bpf_ktime_get_boot_ns");
/// `u64 bpf_ktime_get_coarse_ns(void)`: a helper of Linux.
pub const KTIME_GET_COARSE_NS: i32 = helper("bpf_ktime_get_coarse_ns");
/// `u32 bpf_get_prandom_u32(void)`: a helper of Linux.
pub const GET_PRANDOM_U32: i32 = helper("bpf_get_prandom_u32");
/// `u32 bpf_get_smp_processor_id(void)`: a helper of Linux.
pub const GET_SMP_PROCESSOR_ID: i32 = helper("bpf_get_smp_processor_id");
/// `u32 payload_offset(ctx)`: offset of the payload found by a header walk.
pub const PAYLOAD_OFFSET: i32 = 0x7fff_0000;
/// `u32 netlink_attribute(ctx, u32 from, u32 kind)`: its offset, 0 if absent.
pub const NETLINK_ATTRIBUTE: i32 = 0x7fff_0001;
/// `u32 netlink_nested_attribute(ctx, u32 at, u32 kind)`: its offset, 0 if absent.
pub const NETLINK_NESTED_ATTRIBUTE: i32 = 0x7fff_0002;

/// A name for listings; `None` when the number is neither a helper's nor one of
/// these.
pub const fn name(number: i32) -> Option<&'static str> {
    Some(match number {
        PAYLOAD_OFFSET => "payload_offset",
        NETLINK_ATTRIBUTE => "netlink_attribute",
        NETLINK_NESTED_ATTRIBUTE => "netlink_nested_attribute",
        _ => match helpers::helper(number) {
            Some(helper) => helper.name,
            None => return None,
        },
    })
}

/// The number of a helper that is named here; a wrong name does not compile.
const fn helper(name: &str) -> i32 {
    match helpers::number(name) {
        Some(number) => number,
        None => panic!("no helper has this name"),
    }
}
