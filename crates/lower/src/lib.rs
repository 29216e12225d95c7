//! From evidence that a program is safe to code that an engine can run.
#![forbid(unsafe_code)]
