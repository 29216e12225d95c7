//! Tests of the crate, in one executable.

mod structure;
mod trees;
