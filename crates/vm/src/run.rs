//! The state of a run: machine, limits, addresses, what keeps values of maps.

pub mod addresses;
mod deadline;
pub(crate) mod guard;
mod machine;
mod meter;
mod program_streams;
pub(crate) mod system;
mod unchecked;

pub use addresses::{Addresses, USER_REGISTERS};
pub use deadline::Deadline;
pub use guard::RunGuard;
pub use machine::{
    FRAME_BYTES, HostClock, MAX_FRAMES, MAY_GOTO_LOOPS, Machine, Outcome, RunContext,
};
pub use meter::Meter;
pub use program_streams::{Stream, Streams};
pub use system::System;
pub use unchecked::Unchecked;
