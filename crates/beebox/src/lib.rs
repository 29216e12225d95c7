//! The Linux BPF machine in user space: the library to embed.
#![forbid(unsafe_code)]
