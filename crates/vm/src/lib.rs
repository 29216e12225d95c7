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
//! `addresses.rs` is the address space of checked runs, `machine.rs` the state of a run and its
//! `RunContext`, `system.rs` the machine and process that helpers report, `network/` its network
//! (devices, routes, rules, neighbours, sockets with the memory in which programs read them),
//! `unchecked.rs` the one assertion of safety, `meter.rs` and `deadline.rs` the limits. Helpers are
//! written against the memory port of `helper.rs`; `direct.rs` implements it for verified programs,
//! as the checked engine does for its model memory, with `stack_frames.rs`, the list of stack
//! frames in which helpers find the program's stack; `direct_call.rs` makes C functions of helpers
//! over it, and `implementation.rs` is one with the signatures that it declares. `calls.rs` has the
//! helpers of unverified programs (with the platform's C calling convention, so that native code
//! calls them directly), `iteration.rs` helpers with callbacks (they return the next call, engines
//! make it), `host_function.rs` functions of the host, `model.rs` what functions need of the
//! checked engine beyond the memory port. Of maps, `map_object.rs` is the interface that programs
//! use, `guard.rs` the epoch that keeps values, `lock.rs` spin locks and `timers.rs` timers in
//! values (`beebox::internal::run` fires them between runs), `arena_object.rs` arenas as engines
//! reach them, `objects/` the objects that programs allocate with their lists and trees,
//! `program_streams.rs` the streams of a program. Native code and the threaded interpreter use
//! `verified_run.rs` (what runs have in common), `direct_context.rs` (the context of verified
//! programs), `direct_access.rs` and `map_function.rs` (operations on one map without the helper),
//! `hash_lookup.rs` (the layout of hash tables that it searches by itself) and `tail_table.rs`
//! (program arrays). `packet_buffer.rs` is a packet with headroom and tailroom, `packet_state.rs`
//! its metadata outside the context, `packet_context.rs` the offsets of its addresses in contexts.

pub mod addresses;
mod arena_object;
mod bit_operation;
mod bpf_call;
mod calls;
mod cell_groups;
mod cells;
mod context;
mod deadline;
mod direct;
mod direct_access;
mod direct_call;
mod direct_context;
mod guard;
mod hash_lookup;
mod helper;
mod host_function;
mod implementation;
mod iteration;
mod lock;
mod machine;
mod map_function;
mod map_object;
mod map_operations;
mod meter;
mod model;
pub mod network;
mod objects;
mod packet_buffer;
mod packet_context;
mod packet_load;
mod packet_state;
mod program_streams;
mod stack_frames;
pub mod sync;
mod system;
mod tail_table;
mod timers;
mod unchecked;
mod verified_run;

pub use addresses::{Addresses, USER_REGISTERS};
pub use arena_object::{ARENA_PAGE, ArenaObject, arena_address, arena_user_address};
pub use bit_operation::bit_operation;
pub use bpf_call::{BpfCall, SystemCalls};
pub use calls::{Call, find_call};
pub use cell_groups::{CellGroup, CellGroups};
pub use cells::{CELL_BYTES, CellAddress, CellSlice, Cells, LINE_CELLS, OutOfMemory};
pub use context::SkBuff;
pub use deadline::Deadline;
pub use direct::Direct;
pub use direct_access::{DirectAccess, Elements};
pub use direct_call::direct_call;
pub use direct_context::{ContextKind, DirectContext};
pub use guard::RunGuard;
pub use hash_lookup::{HASH_MULTIPLIER, HashLookup, HashParts, hash_start, hash_words};
pub use helper::{Helper, MemoryPort};
pub use host_function::{HostFunction, HostMemory, host_call};
pub use implementation::{Implementation, signatures};
pub use iteration::{CallBlock, Cursor, Iteration, IterationStep, begin_calls, next_call};
pub use lock::LockedValue;
pub use machine::{
    FRAME_BYTES, HostClock, MAX_FRAMES, MAY_GOTO_LOOPS, Machine, Outcome, RunContext,
};
pub use map_function::{MapFunction, RecordOutput, WordLookup};
pub use map_object::{MapAttributes, MapHandle, MapObject};
pub use map_operations::{MapOperations, Samples, SamplesReader, ValueOf};
pub use meter::Meter;
pub use model::{ModelPort, ModelPrograms, Opened};
pub use objects::{ObjectLayout, Objects, Owned, OwningField, Side};
pub use packet_buffer::{HEADROOM, PacketBuffer};
pub use packet_context::{FLOW_DISSECTOR, PacketContext, SKB, XDP};
pub use packet_load::{
    OUTSIDE_PACKET, PacketRules, load_from_packet, load_packet, load_packet_outside,
};
pub use packet_state::{Checksum, ClonedPacket, PacketState, Redirect, Tunnel};
pub use program_streams::{Stream, Streams};
pub use stack_frames::{FrameLayout, FrameRecord, StackFrames};
pub use system::System;
pub use tail_table::{TailConvention, TailTable, TailTableError, TailTarget};
pub use timers::{Callback, FiredTimer, TimerClock, Timers};
pub use unchecked::Unchecked;
pub use verified_run::{NoSuchCpu, References};
