//! Filters on captures: files and streams in pcap and pcapng, with the same result for any number
//! of threads.
//!
//! [`count`] counts the packets that match a [`Filter`](crate::Filter) or an
//! [`Expression`](crate::Expression), [`copy`] writes them to a file. Memory: a buffer of 256 KiB for each
//! thread where a capture is not mapped, and the matching packets of a few segments; it does not grow
//! with the capture.

pub use crate::internal::captures::{
    CaptureError, FilterCaptureError, FilterSource, Format, Input, LinkType, Options, Output,
    PacketCounts, copy, count,
};
