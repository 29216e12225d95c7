//! Side-by-side benchmarks.
#![forbid(unsafe_code)]
