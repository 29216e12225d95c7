//! Tests of the crate, in one executable.

mod formula;
mod printed;
mod profiles;
mod programs;
