//! Coverage of files by lines, jumps and functions, and the reader of tracefiles.

pub use report::coverage::{
    BranchCoverage, BranchPlace, FileCoverage, FunctionCoverage, LcovFault, LineCoverage, read_lcov,
};
