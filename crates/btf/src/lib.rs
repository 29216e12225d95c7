//! BPF type format (BTF): what types a program and a kernel have.
#![forbid(unsafe_code)]
