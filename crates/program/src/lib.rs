//! A program as loaded and linked.
#![forbid(unsafe_code)]
