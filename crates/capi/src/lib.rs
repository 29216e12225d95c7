//! The C library: `libbeebox` with the header `beebox.h`.
//!
//! Functions have libbpf's names with `beebox_` in place of `bpf_`, its arguments and its way to
//! report errors: negative error numbers, NULL with `errno`. Each does nothing but hand its arguments
//! to the library `beebox`. No panic crosses the boundary.
//!
//! # Modules
//!
//! * `boundary.rs`: panics, errors, pointers of the caller
//! * `handles.rs`: numbers in place of file descriptors
//! * `object.rs`, `program.rs`, `map.rs`: objects, their programs and maps
//! * `elements.rs`, `batches.rs`: elements of maps; `ring_buffer.rs`, `perf_buffer.rs`: records
//! * `test_run.rs`, `runner.rs`: runs; `printed.rs`: text of `bpf_printk`
//! * `verification.rs`: verdicts
//! * `filter.rs`, `seccomp.rs`: classic filters
//! * `any_calls.rs`: calls that bytes choose, for the fuzz target
//!
//! Unsafe code rests on what the head of `beebox.h` asks of callers.
#![allow(
    clippy::missing_safety_doc,
    reason = "the head of beebox.h says what callers promise; functions say what is theirs alone"
)]

mod any_calls;
mod batches;
mod boundary;
mod elements;
mod filter;
mod handles;
mod map;
mod object;
mod perf_buffer;
mod printed;
mod program;
mod ring_buffer;
mod runner;
mod seccomp;
mod test_run;
mod verification;

use std::ffi::c_char;

pub use any_calls::any_calls;
pub use batches::*;
pub use boundary::{beebox_last_error, beebox_last_explanation};
pub use elements::*;
pub use filter::*;
pub use handles::beebox_close;
pub use map::*;
pub use object::*;
pub use perf_buffer::*;
pub use printed::beebox_last_printk;
pub use program::*;
pub use ring_buffer::*;
pub use runner::*;
pub use seccomp::*;
pub use test_run::*;
pub use verification::*;

/// Version of the library, as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn beebox_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
