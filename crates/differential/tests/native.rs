//! Native code of generated programs, beside the reference evaluator and another disassembler.
//! Here rather than in `jit`, whose own tests so depend on nothing that depends on it.

mod comparison_trees;
mod decoded;
mod entries;
mod loops;
mod packet_filters;
