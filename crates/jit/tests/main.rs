//! Tests of the crate, in one executable.

mod buffer_size;
mod comparison_trees;
mod decoded;
mod divide;
mod entries;
mod hardened;
mod loops;
mod merged_branches;
