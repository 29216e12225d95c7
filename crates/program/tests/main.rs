//! Tests of the crate, in one executable.

mod case_inverse;
mod creation;
