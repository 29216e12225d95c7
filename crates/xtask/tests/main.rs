//! Tests of the crate, in one executable.

mod plugin;
mod sample;
