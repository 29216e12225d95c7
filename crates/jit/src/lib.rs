//! Native code for lowered programs.
