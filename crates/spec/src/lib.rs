//! What the rooms below may know of the world above: the layout of program
//! contexts, the numbers and names of helpers, program types and map kinds, since
//! when Linux has each, and ports to the outside. Definitions only.
#![forbid(unsafe_code)]

pub mod calls;
pub mod context;
pub mod helpers;
pub mod kernel;
pub mod maps;
mod ports;
pub mod programs;
pub mod registry;
pub mod since;

pub use kernel::Kernel;
pub use ports::{Clock, Random, SplitMix};
