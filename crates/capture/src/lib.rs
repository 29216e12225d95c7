//! pcap and pcapng files: reading, writing, splitting.
#![forbid(unsafe_code)]
