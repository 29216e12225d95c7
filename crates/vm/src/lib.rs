//! The execution model that every engine shares: what a program finds in `r1`,
//! which calls it can make, and what it may use up.
//!
//! An engine runs over a [`Machine`]: the registers, the stack and the context of
//! one run. A machine is made once and used for any number of runs, so starting
//! a run costs a few stores.

mod calls;
mod context;
mod machine;
mod packet_load;

pub use calls::{Call, find_call};
pub use context::SkBuff;
pub use machine::{Machine, Outcome, STACK_BYTES, Surroundings};
pub use packet_load::{Bounds, load_packet, load_packet_beyond};
