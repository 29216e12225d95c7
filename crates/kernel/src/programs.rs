//! Inputs of program types as `BPF_PROG_TEST_RUN` makes them: packets with their contexts,
//! and contexts of programs without packets. Each type has its rules in a file.

mod context_only;
mod flow_dissector;
mod netfilter;
mod sk_lookup;
mod skb;
mod test_run;
mod verdict;
mod xdp;

pub use netfilter::NetfilterHook;
pub(crate) use sk_lookup::field as lookup_field;
pub(crate) use skb::field;
pub use test_run::{LINK_HEADER, TestInput, TestProgram};
pub(crate) use test_run::{TC_ACT_REDIRECT, XDP_REDIRECT};
pub use verdict::{PacketVerdict, verdict, verdict_list, verdict_names};
pub use vm::{HEADROOM, PacketBuffer, PacketContext, SKB, XDP};
pub(crate) use xdp::{
    FRAME as XDP_FRAME, INGRESS_IFINDEX as XDP_IFINDEX, RX_QUEUE_INDEX as XDP_QUEUE,
    is_wrong_metadata,
};
