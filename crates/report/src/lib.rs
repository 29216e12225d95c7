//! Renders the answers of the house for people and for programs.
#![forbid(unsafe_code)]

pub mod object;
pub mod seccomp;
mod table;
