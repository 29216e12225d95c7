//! Renders objects, seccomp tables, findings and explanations as text and JSON, and
//! bindings of objects as C and Rust.
#![forbid(unsafe_code)]

pub mod bindings;
pub mod btf;
pub mod explain;
pub mod kfuncs;
pub mod object;
pub mod run;
pub mod seccomp;
mod table;
pub mod terminal;
pub mod value;
pub mod veristat;
