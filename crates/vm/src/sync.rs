//! Atomics, fences and locks of memory that threads share: those of the standard library, or,
//! with `--cfg loom`, those of the model checker loom, which executes every interleaving of
//! a few threads with every value that an ordering lets a load return.
//!
//! Tests of a module `model` run under loom only:
//! `RUSTFLAGS='--cfg loom' cargo test -p beebox-vm -p beebox-kernel --lib model::`.

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::{Mutex, MutexGuard, atomic},
    thread::yield_now,
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::{Mutex, MutexGuard, atomic},
    thread::yield_now,
};
