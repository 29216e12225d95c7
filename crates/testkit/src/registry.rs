//! The tables of [`spec::registry`], asked of the running kernel.
//!
//! [`memory`] reads prototypes of helpers and sets of kfuncs out of the kernel's
//! read-only data; [`ask`] loads one small program for each question; [`build`](mod@build)
//! makes a registry of the answers, [`source`] adds what cannot be asked, and
//! [`compare`](mod@compare) compares a registry with the kernel.

pub mod ask;
pub mod build;
pub mod compare;
pub mod layout;
pub mod maps;
pub mod memory;
pub mod source;
