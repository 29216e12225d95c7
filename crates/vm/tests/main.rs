//! Tests of the crate, in one executable.

mod direct;
mod machine;
