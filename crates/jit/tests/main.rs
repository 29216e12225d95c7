//! Tests of the crate, in one executable.

mod buffer_size;
mod divide;
mod listings;
