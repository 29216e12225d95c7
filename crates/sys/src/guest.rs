//! The first process of a kernel that is asked about programs, as an executable of x86-64 Linux.

/// `guest/loader.rs`, compiled: static, without libraries. Empty in builds for other systems.
pub static LOADER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest-loader"));
