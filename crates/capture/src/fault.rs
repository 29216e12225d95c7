//! Errors of captures.

use std::{error, fmt, io};

/// Error that ended the reading of a capture, after everything before it was read.
#[derive(Debug)]
pub enum Error {
    /// The source could not be read or decompressed.
    Io {
        /// Offset in bytes in the decompressed capture.
        offset: u64,
        /// Error of the system.
        source: io::Error,
    },
    /// The bytes are not a capture, or a damaged one.
    #[doc(hidden)]
    Fault(Fault),
}

/// Malformed item of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of packets before the fault.
    pub packets: u64,
    /// Offset in bytes of the malformed record or block in the decompressed capture.
    pub offset: u64,
    /// Kind of fault.
    pub problem: Problem,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The capture has no byte.
    Empty,
    /// The capture starts with neither format's magic number.
    UnknownFormat {
        /// First bytes of the capture; missing ones are 0.
        magic: [u8; 4],
    },
    /// The version of the format is unsupported.
    UnsupportedVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The capture ends inside a header, record or block.
    Truncated {
        /// Size in bytes of the header, record or block, from the offset of the fault.
        needed: u64,
        /// Bytes that remain there.
        present: u64,
    },
    /// The captured length exceeds the maximum of the link type.
    CapturedTooLong {
        /// Captured length in bytes.
        captured: u32,
        /// Maximum in bytes.
        limit: u32,
    },
    /// The length of a block is less than 12 or not a multiple of 4.
    BlockLength {
        /// Stated length in bytes.
        length: u32,
    },
    /// The length of a block exceeds the maximum.
    BlockTooLong {
        /// Stated length in bytes.
        length: u32,
        /// Maximum in bytes.
        limit: u32,
    },
    /// The two lengths of a block differ.
    BlockTrailer {
        /// Length at its start.
        length: u32,
        /// Length at its end.
        trailer: u32,
    },
    /// A block is shorter than its type requires, or its packet or options reach beyond
    /// it.
    BlockTooShort {
        /// Block type.
        kind: u32,
        /// Stated length in bytes.
        length: u32,
    },
    /// The byte-order magic of a section is invalid.
    ByteOrderMagic {
        /// Bytes of the magic.
        magic: [u8; 4],
    },
    /// A packet refers to an undescribed interface.
    UnknownInterface {
        /// Number of the interface.
        interface: u32,
        /// Number of interfaces described so far in the section.
        described: u32,
    },
    /// A section describes more interfaces than are supported.
    TooManyInterfaces {
        /// Maximum number.
        limit: u32,
    },
    /// The time resolution exceeds 64 bits, or the option of a time resolution or offset
    /// has a wrong length.
    TimeResolution,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { offset: 0, source } => source.fmt(f),
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

impl error::Error for Fault {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Problem::Empty => f.write_str(
                "the capture is empty: not even its header was written; record it again",
            ),
            Problem::UnknownFormat {
                magic: [a, b, c, d],
            } => write!(
                f,
                "neither pcap nor pcapng: first bytes {a:02x} {b:02x} {c:02x} {d:02x}"
            ),
            Problem::UnsupportedVersion { major, minor } => {
                write!(f, "version {major}.{minor} of the format is unsupported")
            }
            Problem::Truncated { needed, present } => write!(
                f,
                "the capture is truncated: the record needs {needed} bytes, {present} remain"
            ),
            Problem::CapturedTooLong { captured, limit } => write!(
                f,
                "captured length of {captured} bytes exceeds the maximum of the link type, {limit}"
            ),
            Problem::BlockLength { length } => write!(
                f,
                "block length {length} is less than 12 or not a multiple of 4"
            ),
            Problem::BlockTooLong { length, limit } => {
                write!(f, "block length {length} exceeds the maximum, {limit}")
            }
            Problem::BlockTrailer { length, trailer } => write!(
                f,
                "block length is {length} at its start and {trailer} at its end"
            ),
            Problem::BlockTooShort { kind, length } => write!(
                f,
                "block of type {kind:#x} is too short for its contents: {length} bytes"
            ),
            Problem::ByteOrderMagic {
                magic: [a, b, c, d],
            } => write!(
                f,
                "section has an invalid byte-order magic: {a:02x} {b:02x} {c:02x} {d:02x}"
            ),
            Problem::UnknownInterface {
                interface,
                described,
            } => write!(
                f,
                "packet refers to interface {interface}, and the section describes {described}"
            ),
            Problem::TooManyInterfaces { limit } => {
                write!(f, "section describes more than {limit} interfaces")
            }
            Problem::TimeResolution => {
                f.write_str("interface has an invalid time resolution or offset")
            }
        }
    }
}

impl std::error::Error for Problem {}
