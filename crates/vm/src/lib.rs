//! The execution model that all engines share: contexts, helpers, packet loads, limits,
//! and programs whose safety the caller asserts ([`Unchecked::assume_safe`]).
//!
//! An engine runs on a [`Machine`]: registers, stack and context of one run. A machine is
//! made once and used for any number of runs, so that starting one costs a few stores.
//! Helpers are written against [`MemoryPort`]; programs reach maps through [`MapObject`] and [`MapOperations`], and
//! values of maps are [`Cells`].
//!
//! # Modules
//!
//! - `run/`: `machine.rs` is the state of a run and its `RunContext`, `system.rs` the machine and
//!   process that helpers report, `addresses.rs` the address space of checked runs, `meter.rs` and
//!   `deadline.rs` the limits, `guard.rs` the epoch that keeps values of maps, `program_streams.rs`
//!   the streams of a program, `unchecked.rs` the one assertion of safety.
//! - `packets/`: `packet_buffer.rs` is a packet with headroom and tailroom, `packet_state.rs` its
//!   metadata outside the context, `packet_context.rs` the offsets of its addresses in contexts,
//!   `sk_buff.rs` the context of socket filters, `packet_load.rs` the loads of classic programs.
//! - `maps/`: `map_object.rs` is what goes for maps of every kind, `map_operations.rs` what programs
//!   do with those of one kind, `arena_object.rs` arenas as engines reach them, `cells.rs` the memory
//!   of values, `cell_groups.rs` that of buckets, `lock.rs` spin locks and `timers.rs` timers in
//!   values (`beebox::internal::run` fires them between runs).
//! - `calls/`: helpers are written against the memory port of `memory_port.rs`; `model_port.rs` is
//!   what functions need of the checked engine beyond it, `given_memory.rs` kernel memory that a test
//!   gives. `implementation.rs` is a function with the
//!   signatures that it declares, `iteration.rs` has helpers with callbacks (they return the next
//!   call, engines make it), `engine_calls.rs` the helpers of unverified programs (with the
//!   platform's C calling convention, so that native code calls them directly), `host_function.rs`
//!   functions of the host, `bpf_call.rs` calls of bpf(2), `bit_operation.rs` bit operations.
//! - `native/`: what native code and the threaded interpreter use. `verified_run.rs` is what runs
//!   have in common, `direct.rs` the memory port of verified programs, with `stack_frames.rs`, the
//!   list of stack frames in which helpers find the program's stack; `direct_call.rs` makes C
//!   functions of helpers over it. `direct_context.rs` is the context of verified programs,
//!   `direct_access.rs` and `map_function.rs` are operations on one map without the helper,
//!   `hash_lookup.rs` is the layout of hash tables that native code searches by itself,
//!   `tail_table.rs` that of program arrays.
//! - `network/`: the network of a run: devices, routes, rules, neighbours, sockets with the memory in
//!   which programs read them.
//! - `objects/`: the objects that programs allocate, with their lists and trees.
//! - `counters.rs`: counters that code increments, for coverage.
//! - `sync.rs`: the atomics and locks of memory that threads share.

mod calls;
mod counters;
mod maps;
mod native;
pub mod network;
mod objects;
mod packets;
mod run;
pub mod sync;

pub use calls::*;
pub use counters::Counters;
pub use maps::*;
pub use native::*;
pub use objects::{ObjectLayout, Objects, Owned, OwningField, Side};
pub use packets::*;
pub use run::*;
