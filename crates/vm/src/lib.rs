//! The execution model that all engines share: contexts, helpers, packet loads, limits,
//! and programs whose safety the caller asserts ([`Unchecked::assume_safe`]).
//!
//! An engine runs on a [`Machine`]: registers, stack and context of one run. A machine is
//! made once and used for any number of runs, so that starting one costs a few stores.

mod calls;
mod context;
mod deadline;
mod machine;
mod meter;
mod packet_load;
mod unchecked;

pub use calls::{Call, find_call};
pub use context::SkBuff;
pub use deadline::Deadline;
pub use machine::{
    FRAME_BYTES, HostClock, MAX_FRAMES, MAY_GOTO_LOOPS, Machine, Outcome, RunContext,
};
pub use meter::Meter;
pub use packet_load::{PacketRules, load_packet, load_packet_beyond};
pub use unchecked::Unchecked;
