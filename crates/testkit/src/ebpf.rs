//! eBPF programs that are safe by construction, and comparisons on them.
//!
//! [`Generator`] makes programs from a seed or from a fuzzer's bytes: every
//! instruction of the table, in loops, calls and forks, with the idioms that
//! compilers write and near misses of them. A program works on a memory that it
//! is handed and on its stack, reads nothing that it has not written, ends, and
//! stores what it computed where it shows. The same body runs on our engines
//! (`r1`: the memory, `r2`: its length) and in the kernel (an XDP program and its
//! packet): only what stands before it differs.
//!
//! - [`mod@reference`] evaluates a program step by step, with every access and every
//!   read checked: it says what is right, and whether a program is safe at all;
//! - [`shrink`] makes a program that shows a difference small;
//! - [`coverage`] counts what was generated and executed.
//!
//! # Modules
//!
//! `generate.rs`, `statements.rs` and `memory.rs` generate programs that are safe by construction;
//! `idioms/` has compiler idioms, `near_miss.rs` near misses of them; `reference.rs` is the reference
//! evaluator, which checks safety by the provenance of values (`origin.rs`).

mod choices;
pub mod coverage;
mod draft;
mod generate;
mod idioms;
mod memory;
mod near_miss;
mod origin;
mod palette;
mod program;
pub mod reference;
mod scope;
pub mod shrink;
mod statements;

pub use choices::Choices;
pub use generate::Generator;
pub use program::{Dialect, Entry, Notes, Program};

/// The helpers without arguments that programs call: a random number, and the
/// processor's number.
const HELPERS: &[i32] = &[
    spec::calls::GET_PRANDOM_U32,
    spec::calls::GET_SMP_PROCESSOR_ID,
];

/// Helpers with arguments, which search the packet (for engines only).
pub const PACKET_HELPERS: &[i32] = &[
    spec::calls::PAYLOAD_OFFSET,
    spec::calls::NETLINK_ATTRIBUTE,
    spec::calls::NETLINK_NESTED_ATTRIBUTE,
];

/// The result of one of [`PACKET_HELPERS`].
pub fn packet_helper(number: i32, packet: &packet::Packet<'_>, r2: u64, r3: u64) -> u64 {
    let (from, kind) = (r2 as u32, r3 as u32);
    u64::from(match number {
        spec::calls::NETLINK_ATTRIBUTE => packet::netlink_attribute(packet.data(), from, kind),
        spec::calls::NETLINK_NESTED_ATTRIBUTE => {
            packet::netlink_nested_attribute(packet.data(), from, kind)
        }
        _ => packet::payload_offset(packet),
    })
}
