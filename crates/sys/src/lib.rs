//! The few doors to the host: sockets, seccomp(2), mappings, libpcap at run time.
