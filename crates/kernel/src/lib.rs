//! Kernel services of a running program: maps, with the results and error numbers of 6.18,
//! helpers and kfuncs over the memory of any engine, and contexts of program types.
//!
//! [`maps::Map::create`] makes a map of its definition, by the kernel's rules of creation.
//!
//! # Modules
//!
//! `maps.rs` has maps as bpf(2) reaches them, and makes of each the `vm::MapObject` that programs
//! reach. A kind is a file (`array.rs`, `hash/` with its LRU forms, `lpm_trie.rs`, `queue.rs`,
//! `bloom_filter.rs`, `ringbuf.rs` and those that hold objects), which implements two interfaces:
//! `vm::MapOperations`, what programs do, and that of `syscall_operations.rs`, what bpf(2) does beside it.
//! `create.rs` checks and creates maps, `resources.rs` has the objects that keys and values name,
//! `socket.rs` model sockets, `slots.rs` arrays of objects, `pool.rs` recycles elements and
//! keeps their values by CPU, `hash/buckets.rs` finds them by tags, `hash/lru/` chooses those
//! that LRU maps evict, `memory.rs` counts the memory of maps, `arena/` has the pages of arenas,
//! which `free_ranges.rs` chooses, `spin_lock.rs` locks for a few instructions, `special.rs`
//! what special fields of values hold.
//!
//! `helpers/` has a function for each helper, in files by subject, and one table of them; each takes a `Call`
//! (`call.rs`); `kfuncs/` has
//! the same for kfuncs, and what a call of each of Linux's does (`kfuncs/state.rs`); `dynptr.rs` is what
//! helpers and kfuncs on dynptrs share, `object_layout.rs` where special fields own objects.
//! `helpers/absence.rs` are those about what does not exist here. `process/` is the process of a run, in
//! which programs call bpf(2), `variables.rs` the variables that the kernel has for each CPU. `lookups/`
//! looks up routes in the network of a run (`ipv4.rs`, `ipv6.rs`, by `rules.rs`), chooses among next hops
//! and source addresses, and looks up sockets (`sockets/`); `network_file/` reads the file that describes
//! that network. `model/` is the kernel around programs that Linux does not test-run, as tests give it.
//! `programs/test_run.rs` gives packets and contexts as `BPF_PROG_TEST_RUN` does, with a
//! file of rules for each kind of test run.
#![forbid(unsafe_code)]

mod call;
mod dynptr;
pub mod helpers;
pub mod kfuncs;
mod lookups;
pub mod maps;
pub mod model;
pub mod network_file;
mod object_layout;
pub mod process;
pub mod programs;
pub mod variables;

pub use object_layout::object_layout;
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
