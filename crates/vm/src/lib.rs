//! The execution model that every engine shares: contexts, stack, calls.
#![forbid(unsafe_code)]
