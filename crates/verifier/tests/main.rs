//! Tests of the crate, in one executable.

mod scalar;
mod tnum;
