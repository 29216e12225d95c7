//! Tests of the crate, in one executable.

mod facade;
mod kernel_names;
mod packages;
mod public_types;
mod workspace;
