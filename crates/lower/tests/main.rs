//! Tests of the crate, in one executable.

mod liveness;
mod structure;
mod trees;
