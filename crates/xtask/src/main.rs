//! Repository chores: captures, generated documents.
#![forbid(unsafe_code)]

fn main() {}
