//! What verification costs, by instruction and by subprogram.
//!
//! Counted only on request ([`Options::collect_cost`](crate::Options::collect_cost)): two
//! numbers for each slot of the program. Their sums are the kernel's counts of processed
//! instructions and of states made.

/// How often the walk passed an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsnCost {
    /// Times that it was walked over.
    pub processed: u32,
    /// States made at it.
    pub states: u32,
}

/// A subprogram, with its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubprogCost {
    /// Name, if BTF has one.
    pub name: String,
    /// First instruction.
    pub start: u32,
    /// Instruction behind the last.
    pub end: u32,
    /// Bytes of stack, as far as the walk came.
    pub stack_depth: u32,
}

/// What a verification cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// By instruction slot.
    pub insns: Vec<InsnCost>,
    /// By subprogram, in the order of the program.
    pub subprogs: Vec<SubprogCost>,
}
