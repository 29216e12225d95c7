//! Tests of the crate, in one executable.

mod facade;
mod kernel_names;
mod kinds;
mod packages;
mod public_types;
mod workspace;
