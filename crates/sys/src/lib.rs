//! The few doors to the host: sockets, bpf(2), seccomp(2), mappings, libpcap, libbpf and
//! librte_bpf at run time.
//!
//! Every function here is one door: it asks the system one thing and answers
//! with data. An [`Errno`] is the system's own "no".

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
