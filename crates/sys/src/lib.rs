//! System interfaces: sockets, bpf(2), seccomp(2), ptrace(2), mappings, and libpcap,
//! libseccomp, libbpf and librte_bpf loaded at run time.
//!
//! Each function makes one request to the system and returns data or an [`Errno`].
//!
//! Elsewhere than on Linux there are files and their mappings only; what describes the running
//! kernel and compiles filter expressions answers with an error.

mod compile_error;
mod errno;
pub mod files;
pub mod guest;
#[cfg(unix)]
pub mod input;
#[cfg(not(unix))]
#[path = "input_elsewhere.rs"]
pub mod input;
#[cfg(target_os = "linux")]
pub mod interruptible;
#[cfg(not(target_os = "linux"))]
#[path = "interruptible_elsewhere.rs"]
pub mod interruptible;
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod libpcap;
#[cfg(not(target_os = "linux"))]
#[path = "libpcap_elsewhere.rs"]
pub mod libpcap;
pub mod mapping;
#[cfg(target_os = "linux")]
pub mod ptrace;
#[cfg(not(target_os = "linux"))]
#[path = "ptrace_elsewhere.rs"]
pub mod ptrace;
#[cfg(unix)]
pub mod unfinished;
#[cfg(not(unix))]
#[path = "unfinished_elsewhere.rs"]
pub mod unfinished;

#[cfg(target_os = "linux")]
pub mod bpf;
#[cfg(target_os = "linux")]
pub mod capabilities;
#[cfg(target_os = "linux")]
pub mod dpdk;
#[cfg(target_os = "linux")]
pub mod inet;
#[cfg(target_os = "linux")]
pub mod libbpf;
#[cfg(target_os = "linux")]
pub mod library;
#[cfg(target_os = "linux")]
pub mod libseccomp;
#[cfg(target_os = "linux")]
pub mod network;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[cfg(target_os = "linux")]
pub mod signals;
#[cfg(target_os = "linux")]
pub mod socket;
#[cfg(target_os = "linux")]
pub mod tracing;
#[cfg(target_os = "linux")]
pub mod xdp_socket;

pub use errno::Errno;
