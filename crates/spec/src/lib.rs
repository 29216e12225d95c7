//! What the rooms below may know of the world above: the layout of program
//! contexts, the numbers of calls, and ports to the outside. Definitions only.
#![forbid(unsafe_code)]

pub mod calls;
pub mod context;
pub mod maps;
mod ports;
pub mod programs;

pub use ports::{Clock, Random, SplitMix};
