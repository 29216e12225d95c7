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
//! A capture is read through a buffer or, where a whole file is at hand, over a
//! mapping. Reading copies every byte (0.13 s for 1 GB here, which is the bare
//! read loop) before the walk and the filter begin; over a mapping nothing is
//! copied, and the waiting for memory, fetched ahead, hides behind the work on the
//! packets before. A 1 GB capture of 276-byte packets takes 1.15 times the read
//! loop, one of 784-byte packets 0.8 times, filter included; without fetching
//! ahead it is 1.5 and 1.1 times. Filling page tables in advance
//! (`MADV_POPULATE_READ`) gained nothing over faults.
#![forbid(unsafe_code)]

mod compress;
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

pub use compress::Compressor;
pub use decompress::{Compression, decompress};
pub use fault::{Error, Fault, Problem};
pub use framing::{Format, Framing};
pub use interface::{Interface, Resolution, Timestamp};
pub use link::{LinkType, describe};
pub use order::ByteOrder;
pub use pcap::{Layout, PcapHeader};
pub use reader::{Block, Common, Event, Passed, Reader, Record};
pub use split::first_record;
pub use writer::{Encoder, Shape};
