//! Renders objects, seccomp tables, findings and explanations as text and JSON.
#![forbid(unsafe_code)]

pub mod btf;
pub mod explain;
pub mod object;
pub mod seccomp;
mod table;
pub mod value;
