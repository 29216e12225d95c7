//! The execution model that every engine shares: what a program finds in `r1`,
//! which calls it can make, and what it may use up. And the one word by which a
//! host vouches for a program ([`Trusted::assume_safe`]).
//!
//! An engine runs over a [`Machine`]: the registers, the stack and the context of
//! one run. A machine is made once and used for any number of runs, so starting
//! a run costs a few stores.

mod calls;
mod context;
mod deadline;
mod machine;
mod meter;
mod packet_load;
mod trusted;

pub use calls::{Call, find_call};
pub use context::SkBuff;
pub use deadline::Deadline;
pub use machine::{
    FRAME_BYTES, HostClock, MAX_FRAMES, MAY_GOTO_LOOPS, Machine, Outcome, Surroundings,
};
pub use meter::Meter;
pub use packet_load::{PacketRules, load_packet, load_packet_beyond};
pub use trusted::Trusted;
