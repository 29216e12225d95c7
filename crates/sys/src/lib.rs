//! System interfaces: sockets, bpf(2), seccomp(2), ptrace(2), mappings, and libpcap,
//! libseccomp, libbpf and librte_bpf loaded at run time.
//!
//! Each function makes one request to the system and returns data or an [`Errno`].

pub mod bpf;
pub mod capabilities;
pub mod dpdk;
mod errno;
pub mod inet;
pub mod input;
pub mod interruptible;
pub mod kernel;
pub mod libbpf;
pub mod libpcap;
pub mod library;
pub mod libseccomp;
pub mod mapping;
pub mod network;
pub mod process;
pub mod ptrace;
pub mod seccomp;
pub mod signals;
pub mod socket;
pub mod tracing;
pub mod unfinished;
pub mod xdp_socket;

pub use errno::Errno;
