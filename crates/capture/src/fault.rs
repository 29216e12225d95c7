//! What can be wrong with a capture, as data.

use std::io;

/// Why a capture could not be read on. Everything before it was delivered.
#[derive(Debug)]
pub enum Error {
    /// The bytes could not be had (or could not be decompressed).
    Io {
        /// Where, in the (decompressed) capture.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes are no capture, or a damaged one.
    Fault(Fault),
}

/// A fault in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Packets that were delivered before it.
    pub packets: u64,
    /// Where the record or block with the fault starts, in the (decompressed)
    /// capture.
    pub offset: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is not one byte.
    Empty,
    /// It starts like no capture format.
    UnknownFormat {
        /// Its first bytes (0 where there are none).
        magic: [u8; 4],
    },
    /// A version that is not known.
    UnsupportedVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The capture ends inside a header, record or block.
    Truncated {
        /// Bytes from `offset` that it takes.
        needed: u64,
        /// Bytes that there are.
        present: u64,
    },
    /// More captured bytes than any packet of that link type has.
    CapturedTooLong {
        /// Captured length.
        captured: u32,
        /// The most there can be.
        limit: u32,
    },
    /// A block's length is under 12 or no multiple of 4.
    BlockLength {
        /// The length.
        length: u32,
    },
    /// A block is longer than any sane one.
    BlockTooLong {
        /// The length.
        length: u32,
        /// The most there can be.
        limit: u32,
    },
    /// The length after a block is not the one before it.
    BlockTrailer {
        /// Length before.
        length: u32,
        /// Length after.
        trailer: u32,
    },
    /// A block is too short for what its type holds, or its packet or options
    /// reach beyond it.
    BlockTooShort {
        /// The block's type.
        kind: u32,
        /// Its length.
        length: u32,
    },
    /// A section's byte-order magic is neither way round.
    ByteOrderMagic {
        /// The magic.
        magic: [u8; 4],
    },
    /// A packet came by an interface that was not described.
    UnknownInterface {
        /// The interface.
        interface: u32,
        /// Interfaces described so far in the section.
        described: u32,
    },
    /// A section describes more interfaces than are supported.
    TooManyInterfaces {
        /// The most there can be.
        limit: u32,
    },
    /// A time resolution that 64 bits can't hold, or an option that names one
    /// with the wrong length.
    TimeResolution,
}
