//! pcap and pcapng files: reading, writing, splitting.
//!
//! ```text
//! bytes ──► decompress ──► Window ──► Framing (pcap | pcapng) ──► Event ──► Encoder
//!                          one reused      lengths only, no copy     packet or block,
//!                          buffer                                    as it stands in the file
//! ```
//!
//! A [`Reader`] copies the file through one small reused buffer and hands out
//! records where they stand in it: what the file says about a record is decoded
//! only when somebody asks. Memory is bounded by the longest record that the
//! formats allow, and a length is believed only as far as bytes really arrive.
//!
//! Framing is our own: a filter has about 9 ns a packet beyond the bare copy of
//! the file, and the parsers at hand (pcap-parser 0.17: some 30 ns a packet
//! through its reader, which also decodes what no filter asks for) take several
//! times that. A frame found here costs what a bare walk over lengths costs.
//!
//! Files are read, not mapped. A core walks a 1 GB capture of 276-byte packets in
//! 0.12 s through a buffer that stays in its cache (0.11 s of which is the copy)
//! and in 0.15 s through a mapping (page faults, cold lines); with 730-byte
//! packets it is 0.11 s against 0.09 s. Fetching ahead by hand would make the
//! mapping about equal for small packets and a quarter faster for large ones, but
//! a process that reads a mapping dies of a signal when somebody truncates the
//! file, and a read works on every kind of file.
#![forbid(unsafe_code)]

mod decompress;
mod fault;
mod framing;
mod interface;
mod link;
mod order;
mod pcap;
mod pcapng;
mod reader;
mod split;
mod window;
mod writer;

pub use decompress::{Compression, decompress};
pub use fault::{Error, Fault, Problem};
pub use framing::{Format, Framing};
pub use interface::{Interface, Resolution, Timestamp};
pub use link::{LinkType, describe};
pub use order::ByteOrder;
pub use pcap::{Layout, PcapHeader};
pub use reader::{Block, Event, Reader, Record};
pub use split::first_record;
pub use writer::{Encoder, Shape};
