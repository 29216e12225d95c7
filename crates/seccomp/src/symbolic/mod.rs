//! The symbolic engine: what a filter does with every system call, exactly.

mod bits;
pub(crate) mod condition;
pub(crate) mod diagram;
pub(crate) mod explore;
pub(crate) mod outcome;
pub(crate) mod set;
pub(crate) mod solver;
pub(crate) mod value;
