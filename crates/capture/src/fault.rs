//! What can be wrong with a capture, as data.

use std::{error, fmt, io};

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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { offset, source } => write!(f, "at byte {offset}: {source}"),
            Error::Fault(fault) => fault.fmt(f),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Fault(_) => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::Empty | Problem::UnknownFormat { .. } => self.problem.fmt(f),
            problem if self.packets == 0 => {
                write!(
                    f,
                    "before the first packet, at byte {}: {problem}",
                    self.offset
                )
            }
            problem => {
                let (packets, offset) = (self.packets, self.offset);
                write!(f, "after packet {packets}, at byte {offset}: {problem}")
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Problem::Empty => f.write_str("there is nothing in it"),
            Problem::UnknownFormat {
                magic: [a, b, c, d],
            } => write!(
                f,
                "it is neither pcap nor pcapng: it starts with the bytes {a:02x} {b:02x} {c:02x} {d:02x}"
            ),
            Problem::UnsupportedVersion { major, minor } => {
                write!(f, "version {major}.{minor} of the format is not known")
            }
            Problem::Truncated { needed, present } => write!(
                f,
                "it ends inside a record or block: {needed} bytes are wanted, {present} are there"
            ),
            Problem::CapturedTooLong { captured, limit } => write!(
                f,
                "a captured length of {captured} bytes, where no packet has more than {limit}"
            ),
            Problem::BlockLength { length } => write!(
                f,
                "a block of {length} bytes, where blocks have 12 or more, in multiples of 4"
            ),
            Problem::BlockTooLong { length, limit } => {
                write!(f, "a block of {length} bytes, where the limit is {limit}")
            }
            Problem::BlockTrailer { length, trailer } => write!(
                f,
                "a block that states {length} bytes at its start and {trailer} at its end"
            ),
            Problem::BlockTooShort { kind, length } => write!(
                f,
                "a block of type {kind:#x} and {length} bytes is too short for what it should hold"
            ),
            Problem::ByteOrderMagic {
                magic: [a, b, c, d],
            } => write!(
                f,
                "a section with the byte-order magic {a:02x} {b:02x} {c:02x} {d:02x}"
            ),
            Problem::UnknownInterface {
                interface,
                described,
            } => write!(
                f,
                "a packet of interface {interface}, where the section describes {described}"
            ),
            Problem::TooManyInterfaces { limit } => {
                write!(f, "a section with more than {limit} interfaces")
            }
            Problem::TimeResolution => {
                f.write_str("an interface with a time resolution or offset that can't be")
            }
        }
    }
}
