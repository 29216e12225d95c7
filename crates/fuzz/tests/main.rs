//! Tests of the crate, in one executable.

mod seeds;
