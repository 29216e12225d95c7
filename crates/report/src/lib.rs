//! Renders objects, seccomp tables and findings as text and JSON.
#![forbid(unsafe_code)]

pub mod object;
pub mod seccomp;
mod table;
