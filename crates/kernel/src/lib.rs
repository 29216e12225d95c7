//! What Linux offers a running program: maps, with the results and error numbers of 6.18,
//! helpers over the memory of any engine, and contexts of program types.
//!
//! [`maps::Map::create`] makes a map of its definition, by the kernel's rules of creation.
#![forbid(unsafe_code)]

pub mod helpers;
pub mod maps;
pub mod programs;
