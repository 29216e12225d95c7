//! Tests of the crate, in one executable.

mod facade;
mod public_types;
mod workspace;
