//! Helper numbers that engines implement: helpers that need only a clock or random
//! numbers, and the calls of converted classic filters.
//!
//! Two calls of converted filters are ordinary helpers. The others are functions that
//! the kernel's conversion calls by address and that eBPF programs cannot call; they
//! have numbers of a private range above all helpers, as what lowering makes of other calls.

use crate::helpers::{self, HelperId};

/// `u64 bpf_ktime_get_ns(void)`: a helper of Linux.
pub const KTIME_GET_NS: i32 = HelperId::KtimeGetNs.number();
/// `u64 bpf_ktime_get_boot_ns(void)`: a helper of Linux.
pub const KTIME_GET_BOOT_NS: i32 = HelperId::KtimeGetBootNs.number();
/// `u64 bpf_ktime_get_coarse_ns(void)`: a helper of Linux.
pub const KTIME_GET_COARSE_NS: i32 = HelperId::KtimeGetCoarseNs.number();
/// `u32 bpf_get_prandom_u32(void)`: a helper of Linux.
pub const GET_PRANDOM_U32: i32 = HelperId::GetPrandomU32.number();
/// `u32 bpf_get_smp_processor_id(void)`: a helper of Linux.
pub const GET_SMP_PROCESSOR_ID: i32 = HelperId::GetSmpProcessorId.number();
/// `long bpf_tail_call(void *ctx, struct bpf_map *prog_array_map, u32 index)`: a helper of
/// Linux.
pub const TAIL_CALL: i32 = HelperId::TailCall.number();
/// Number of the first call that only lowering makes.
pub const FIRST_LOWERED: i32 = 1 << 30;
/// Number of the first function of a host in resolved code.
pub(crate) const FIRST_HOST_FUNCTION: i32 = 0x7ffc_0000;
/// Number of the first function of Linux in resolved code.
pub(crate) const FIRST_KFUNC: i32 = 0x7ffd_0000;
/// Number of the first bit operation in resolved code.
pub(crate) const FIRST_BIT_OPERATION: i32 = 0x7ffe_0000;
/// `u32 payload_offset(ctx)`: offset of the payload, found by a header walk.
pub const PAYLOAD_OFFSET: i32 = 0x7fff_0000;
/// `u32 netlink_attribute(ctx, u32 from, u32 kind)`: offset of the attribute, 0 if absent.
pub const NETLINK_ATTRIBUTE: i32 = 0x7fff_0001;
/// `u32 netlink_nested_attribute(ctx, u32 at, u32 kind)`: offset of the nested attribute,
/// 0 if absent.
pub const NETLINK_NESTED_ATTRIBUTE: i32 = 0x7fff_0002;

/// Name of a helper or private call for listings; `None` for other numbers.
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
