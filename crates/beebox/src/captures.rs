//! Filters on captures: files and streams in pcap and pcapng.
//!
//! [`Input::count`] counts the packets that match a [`Filter`](crate::Filter) or an
//! [`Expression`](crate::Expression), [`Input::copy`] writes them to a file. Memory: a buffer of 256 KiB
//! where a capture is not mapped; it does not grow with the capture.

pub use crate::internal::captures::{FilterSource, Format, Input, LinkType, PacketCounts};
