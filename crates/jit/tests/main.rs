//! Tests of the crate, in one executable.

mod buffer_size;
mod deadline_cost;
mod divide;
mod install_cost;
mod listings;
mod perf;
mod tail_call_cost;
