//! Native code for lowered programs.

pub mod memory;
