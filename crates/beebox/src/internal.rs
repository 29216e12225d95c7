//! What is behind the promised items: for the command, the gateway and the tools of this
//! repository. Nothing here is promised; a name may change or go with any version.
//!
//! # Modules
//!
//! The crate promises what its pages show (`public-api.txt` lists it; about 115 items); the hidden
//! module `internal` has everything else that the command, the gateway and the tools use, and
//! hidden fields and methods belong to it: without promise. At the root: `filter.rs` and
//! `expression.rs`, `engine.rs` with the engines of filters, `instance/` with the handles of loaded
//! objects, `failure.rs` with their error, `host.rs` with `kfunc!`, and modules that export the
//! promised items of one subject. In `internal/`: `captures/` filters files and streams; `run/` is
//! what handles stand on and runs programs of objects: `load.rs` loads an object, `loaded.rs` is
//! it, `shared.rs` what its runs share, `reuse.rs` takes maps of others, `prepared.rs` a program of
//! it, `program.rs` its runs, `checked.rs` those in the checked engine, `parallel/` those over
//! captures in threads; `raw/` runs unverified instructions and those whose safety the caller
//! asserts; `native.rs` is native code for inspection; `pod.rs` has the types of keys and values;
//! `loading.rs` opens objects by the conventions of a loader and sets what it sets;
//! `kernel_image.rs` unpacks kernel images; `kernel_files.rs` reads kernels from files and
//! directories, `type_file.rs` BTF in files, `object_files.rs` tells objects from other files and
//! which of several defines a symbol; `variables.rs` sets global variables by path;
//! `bytes.rs` has sources of bytes, `maps_json/` maps and records as JSON and back, `expect/`
//! expectation files (`statement.rs` reads statements, `check.rs` runs them, `compare.rs` finds
//! differences, `report.rs` is the result as text, JSON and XML), `test_files/` finds and runs files of
//! tests; `fuzz/` looks for inputs on which a property does not hold
//! (`executor.rs` runs them, `packets.rs` makes and changes frames, `campaign.rs` is the loop,
//! `output.rs` tells and keeps finds), `mutate/` changes programs that tests run, both in threads (`internal/threads.rs`); `listing/` lists
//! instructions: of objects, linked (`linked.rs`) or not (`unlinked.rs`), alone, converted from classic
//! ones, and as Linux keeps them (`xlated.rs`); `verify/results/` verifies the programs of many files in
//! parallel, one row each, and `verify/matrix/` for several kernels; `ask/` boots a kernel and asks it;
//! `seccomp/` has the answers about seccomp filters: tables, single calls, checks and expectations.
//! Answers have methods for text and for data beside them: `run/answer.rs` and `run/packet_rows.rs`
//! those of runs, `run/against/text.rs` of two objects, `raw/answer.rs` of instructions alone,
//! `captures/summary.rs` of filters, `verify/matrix/table.rs`, `verify/results/table.rs` and
//! `ask/output.rs` of verifications. The commands use no crate beside it but `command`, `report` and
//! `sys`; `command` also `kernel-data`.

#[cfg(feature = "kernel-data")]
pub mod ask;
pub mod btf;
#[cfg(feature = "run")]
pub mod bytes;
#[cfg(feature = "capture")]
pub mod captures;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub mod classic;
#[cfg(feature = "coverage")]
pub mod coverage;
pub mod ebpf;
#[cfg(feature = "run")]
pub mod expect;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(feature = "run")]
pub mod host;
pub mod kernel;
#[cfg(feature = "kernel-data")]
mod kernel_files;
#[cfg(feature = "decompress")]
mod kernel_image;
#[cfg(feature = "run")]
pub mod listing;
pub mod loading;
#[cfg(feature = "run")]
pub mod maps;
#[cfg(feature = "run")]
pub mod maps_json;
#[cfg(feature = "fuzz")]
pub mod mutate;
#[cfg(feature = "run")]
pub mod native;
#[cfg(feature = "run")]
pub mod network;
pub mod object;
mod object_files;
#[cfg(feature = "run")]
pub mod pod;
pub mod program;
#[cfg(feature = "run")]
pub mod raw;
#[cfg(feature = "run")]
pub mod run;
#[cfg(feature = "seccomp")]
pub mod seccomp;
#[cfg(feature = "coverage")]
pub mod test_files;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub mod text;
#[cfg(any(feature = "coverage", feature = "fuzz"))]
mod threads;
mod type_file;
pub mod variables;
pub mod verify;

#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use crate::engine::EngineRefusal;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use ::classic::run::{Next, Step};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use ::classic::{Checked, JumpLimitExceeded, Refusal, Rule, Rules, Semantics, Stage};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use isa::classic::{Insn as ClassicInsn, SockFilter};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use jit::memory::{Image, MemoryError, Pool, PoolOptions, Writing};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use jit::perf;

#[cfg(any(feature = "run", feature = "kernel-data"))]
use std::path::Path;

/// The most bytes that are taken from a file, or that `zero:N` makes.
pub const MOST_BYTES: u64 = 1 << 30;

/// The name of a path in messages.
#[cfg(any(feature = "run", feature = "kernel-data"))]
pub(crate) fn name_of(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}
