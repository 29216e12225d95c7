//! The tables of [`spec::registry`], asked of the running kernel.
//!
//! [`memory`] reads prototypes of helpers out of the kernel's read-only data, [`numbering`] tells what
//! their numbers mean in this kernel, [`tables`]
//! sets of BTF ids and other tables; [`query`] loads one small program for each question,
//! [`targets`] asks about tracepoints and iterators; [`build`](mod@build)
//! makes a registry of the answers, [`maps`], [`fields`] and [`privilege`] ask about map
//! kinds, special fields and capabilities, [`rewriting`] about the instructions that Linux
//! makes of one, [`trampolines`] asks another kernel of the release about programs that this one verifies
//! none of, [`source`] adds what cannot be asked, [`configurations`] tells what two configurations
//! of one release have, and
//! [`compare`](mod@compare) compares a registry with the kernel.

pub mod build;
pub mod compare;
pub mod configurations;
pub mod fields;
pub mod layout;
mod map_requests;
pub mod maps;
pub mod memory;
pub mod numbering;
pub mod privilege;
pub mod query;
pub mod rewriting;
pub mod source;
pub mod tables;
pub mod targets;
pub mod trampolines;
