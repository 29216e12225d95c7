//! Tests of the crate, in one executable.

mod classic;
mod command;
mod engines;
mod load;
mod maps;
mod support;
mod tail_calls;
