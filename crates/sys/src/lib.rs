//! System interfaces: sockets, bpf(2), seccomp(2), ptrace(2), mappings, and libpcap, libbpf
//! and librte_bpf loaded at run time.
//!
//! Each function makes one request of the system and returns data; [`Errno`] is the
//! system's error number.

pub mod bpf;
pub mod dpdk;
mod errno;
pub mod kernel;
pub mod libbpf;
pub mod libpcap;
pub mod library;
pub mod mapping;
pub mod network;
pub mod process;
pub mod ptrace;
pub mod seccomp;
pub mod socket;

pub use errno::Errno;
