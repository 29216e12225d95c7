//! pcap and pcapng files: reading, writing, splitting.
//!
//! ```text
//! bytes ──► decompress ──► Window ──► Framing (pcap | pcapng) ──► Event ──► Encoder
//!                          reused     lengths only, no copy       packet or block,
//!                          buffer                                 bytes of the file
//! ```
//!
//! A [`Reader`] reads a stream through one reused buffer, or a mapped file in place, and
//! returns records without copying them. Fields of a record are decoded by its
//! accessors. Memory is bounded by the longest record that the formats allow: the buffer
//! grows with the bytes that arrive, never by a stated length alone.
//!
//! # Modules
//!
//! `window.rs` is the buffer or the mapping; `framing.rs` with `pcap.rs` and `pcapng.rs` computes
//! where records end; `reader.rs` returns records in place; `writer.rs` copies them; `merge.rs`
//! puts packets of several captures into one section; `split.rs` finds where a record starts in
//! the middle of a file, for threads and for tasks of a cluster.
#![forbid(unsafe_code)]

mod compress;
mod decompress;
mod fault;
mod framing;
mod interface;
mod link;
mod merge;
mod order;
mod pcap;
mod pcapng;
mod reader;
mod split;
mod window;
mod writer;

pub use compress::{Compressor, OutputCompression, ReadOnlySuffix};
pub use decompress::{Compression, decompress};
pub use fault::{Error, Fault, Problem};
pub use framing::{Format, Framing};
pub use interface::{Interface, Resolution, Timestamp};
pub use link::{LinkType, packet_metadata};
pub use merge::{Numbering, Section};
pub use order::ByteOrder;
pub use pcap::{Layout, PcapHeader};
pub use reader::{Block, Event, Framed, PacketData, Reader, Record, Skipped};
pub use split::{BOUNDARY_REACH, boundary, first_record};
pub use writer::{Encoder, OtherLinkType};
