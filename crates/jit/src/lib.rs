//! Native code for lowered programs.

pub mod memory;
pub mod perf;
