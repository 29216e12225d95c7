//! Kernel services of a running program: maps, with the results and error numbers of 6.18,
//! helpers and kfuncs over the memory of any engine, and contexts of program types.
//!
//! [`maps::Map::create`] makes a map of its definition, by the kernel's rules of creation.
#![forbid(unsafe_code)]

mod dynptr;
pub mod helpers;
pub mod kfuncs;
pub mod maps;
mod network;
pub mod network_file;
mod objects;
pub mod process;
pub mod programs;
pub mod variables;

pub use objects::object_layout;
use vm::{Helper, Implementation, ModelPort};

/// The helper or kfunc of a number of resolved code, for the memory of an engine; `None` if
/// it is not built.
pub fn find<M: ModelPort>(number: i32) -> Option<Helper<M>> {
    helpers::find(number).or_else(|| kfuncs::find(number))
}

/// The signatures that the helper or kfunc of a number of resolved code is written for; `None`
/// if it is not built, and for bit operations, which have the types of their module.
pub fn declared(number: i32) -> Option<&'static str> {
    helpers::declared(number).or_else(|| kfuncs::declared(number))
}

/// The function of a helper or kfunc that code of verified programs calls; `None` if it is
/// not built, or not for native code.
pub fn find_call(number: i32) -> Option<Implementation> {
    helpers::find_call(number).or_else(|| kfuncs::find_call(number))
}
