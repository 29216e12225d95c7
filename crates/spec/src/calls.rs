//! Numbers of calls: helpers of Linux that need nothing but ports to the outside,
//! and the calls that converted classic filters make.
//!
//! Of the latter, two are ordinary helpers. The others stand for functions that
//! the kernel's own conversion calls by address and that no eBPF program can
//! name; they live in a private range above every helper number.

/// `u64 bpf_ktime_get_ns(void)`: a helper of Linux.
pub const KTIME_GET_NS: i32 = 5;
/// `u64 bpf_ktime_get_boot_ns(void)`: a helper of Linux.
pub const KTIME_GET_BOOT_NS: i32 = 125;
/// `u64 bpf_ktime_get_coarse_ns(void)`: a helper of Linux.
pub const KTIME_GET_COARSE_NS: i32 = 160;
/// `u32 bpf_get_prandom_u32(void)`: a helper of Linux.
pub const GET_PRANDOM_U32: i32 = 7;
/// `u32 bpf_get_smp_processor_id(void)`: a helper of Linux.
pub const GET_SMP_PROCESSOR_ID: i32 = 8;
/// `u32 payload_offset(ctx)`: offset of the payload found by a header walk.
pub const PAYLOAD_OFFSET: i32 = 0x7fff_0000;
/// `u32 netlink_attribute(ctx, u32 from, u32 kind)`: its offset, 0 if absent.
pub const NETLINK_ATTRIBUTE: i32 = 0x7fff_0001;
/// `u32 netlink_nested_attribute(ctx, u32 at, u32 kind)`: its offset, 0 if absent.
pub const NETLINK_NESTED_ATTRIBUTE: i32 = 0x7fff_0002;

/// A name for listings; `None` when the number is not one of these.
pub const fn name(number: i32) -> Option<&'static str> {
    Some(match number {
        KTIME_GET_NS => "bpf_ktime_get_ns",
        KTIME_GET_BOOT_NS => "bpf_ktime_get_boot_ns",
        KTIME_GET_COARSE_NS => "bpf_ktime_get_coarse_ns",
        GET_PRANDOM_U32 => "bpf_get_prandom_u32",
        GET_SMP_PROCESSOR_ID => "bpf_get_smp_processor_id",
        PAYLOAD_OFFSET => "payload_offset",
        NETLINK_ATTRIBUTE => "netlink_attribute",
        NETLINK_NESTED_ATTRIBUTE => "netlink_nested_attribute",
        _ => return None,
    })
}
