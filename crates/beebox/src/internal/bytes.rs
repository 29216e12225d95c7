//! Bytes of packets, contexts and memory, as texts name them: hexadecimal, zeros or a file.
//!
//! ```
//! use beebox::internal::bytes::ByteSource;
//!
//! assert_eq!(ByteSource::parse("zero:3")?.read()?, [0, 0, 0]);
//! assert_eq!(ByteSource::parse("0x01 02")?.read()?, [1, 2]);
//! assert!(ByteSource::parse("no-such-file").is_err());
//! # Ok::<(), beebox::internal::bytes::ByteSourceError>(())
//! ```

use std::error::Error;
use std::fmt;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use crate::internal::captures::Input;
use crate::internal::name_of;
use crate::internal::raw::{ProgramReadError, parse_hex};

pub use super::MOST_BYTES;

/// Bytes of a file that are looked at for the header of a capture, compressed ones too.
const HEAD: usize = 1 << 20;

/// Source of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByteSource {
    /// The bytes.
    Bytes(Vec<u8>),
    /// So many zeros.
    Zeros(usize),
    /// A file that has them, `-` for standard input.
    File(PathBuf),
}

impl ByteSource {
    /// Reads a source: hexadecimal (`hex:` may be in front), `zero:N` for so many zeros, or a file
    /// (`file:` may be in front).
    ///
    /// # Errors
    /// If the text is none of these; files are not opened.
    pub fn parse(text: &str) -> Result<ByteSource, ByteSourceError> {
        if let Some(path) = text.strip_prefix("file:") {
            return Ok(ByteSource::File(path.into()));
        }
        if let Some(digits) = text.strip_prefix("hex:") {
            let bytes = parse_hex(digits).map_err(ByteSourceError::Hex)?;
            return Ok(ByteSource::Bytes(bytes));
        }
        if let Some(count) = text.strip_prefix("zero:") {
            let count = count
                .parse::<u64>()
                .ok()
                .filter(|count| *count <= MOST_BYTES);
            let count = count.ok_or(ByteSourceError::Zeros)?;
            return Ok(ByteSource::Zeros(count as usize));
        }
        if text == "-" || (!text.is_empty() && Path::new(text).exists()) {
            return Ok(ByteSource::File(text.into()));
        }
        let bytes = parse_hex(text).map_err(ByteSourceError::NoFile)?;
        Ok(ByteSource::Bytes(bytes))
    }

    /// Reads a source of a packet: as [`ByteSource::parse`], or words as `proto tcp from 192.0.2.1 port 4000 to
    /// 198.51.100.7 port 443 flags syn`.
    ///
    /// # Errors
    /// As there, and for words that are no packet.
    pub fn parse_packet(text: &str) -> Result<ByteSource, ByteSourceError> {
        match packet::is_packet_text(text) {
            true => match packet::compose(text) {
                Ok(bytes) => Ok(ByteSource::Bytes(bytes)),
                Err(error) => Err(ByteSourceError::Words(error)),
            },
            false => ByteSource::parse(text),
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or has more than [`MOST_BYTES`].
    pub fn read(&self) -> Result<Vec<u8>, ByteSourceError> {
        match self {
            ByteSource::Bytes(bytes) => Ok(bytes.clone()),
            ByteSource::Zeros(count) => Ok(vec![0; *count]),
            ByteSource::File(path) => {
                sys::input::read(path, MOST_BYTES).map_err(|error| ByteSourceError::File {
                    path: path.clone(),
                    error,
                })
            }
        }
    }

    /// The bytes of one packet.
    ///
    /// # Errors
    /// As [`ByteSource::read`], and for a file that is a capture.
    pub fn read_packet(&self) -> Result<Vec<u8>, ByteSourceError> {
        let bytes = self.read()?;
        match self {
            // A header says whether it is a capture.
            ByteSource::File(path)
                if Input::stream(Cursor::new(bytes[..bytes.len().min(HEAD)].to_vec())).is_ok() =>
            {
                Err(ByteSourceError::Capture { path: path.clone() })
            }
            _ => Ok(bytes),
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            ByteSource::Bytes(_) | ByteSource::Zeros(_) => None,
            ByteSource::File(path) => Some(path),
        }
    }
}

/// Reason why a text is no source of bytes, or a source has none.
#[derive(Debug)]
#[non_exhaustive]
pub enum ByteSourceError {
    /// The text behind `hex:` is not hexadecimal.
    Hex(ProgramReadError),
    /// The text is no file that exists, and not hexadecimal.
    NoFile(ProgramReadError),
    /// The words are no packet.
    Words(packet::ComposeError),
    /// The text behind `zero:` is no number up to [`MOST_BYTES`].
    Zeros,
    /// The file cannot be read.
    File {
        /// Its path, `-` for standard input.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is a capture of packets, not one packet.
    Capture {
        /// Its path.
        path: PathBuf,
    },
}

impl fmt::Display for ByteSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ByteSourceError::Words(error) => error.fmt(f),
            ByteSourceError::Hex(error) => error.fmt(f),
            ByteSourceError::NoFile(error) => write!(
                f,
                "there is no such file, and it is no hexadecimal: {error}"
            ),
            ByteSourceError::Zeros => write!(f, "zero:N takes a number up to {MOST_BYTES}"),
            ByteSourceError::File { path, error } => write!(f, "{}: {error}", name_of(path)),
            ByteSourceError::Capture { path } => write!(
                f,
                "{}: this file is a capture, not the bytes of a packet",
                name_of(path)
            ),
        }
    }
}

impl Error for ByteSourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ByteSourceError::Hex(error) | ByteSourceError::NoFile(error) => Some(error),
            ByteSourceError::File { error, .. } => Some(error),
            ByteSourceError::Words(error) => Some(error),
            ByteSourceError::Zeros | ByteSourceError::Capture { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read() {
        let file = ByteSource::File("a=b/c".into());
        assert_eq!(ByteSource::parse("file:a=b/c").unwrap(), file);
        let zeros = ByteSource::parse("zero:2").unwrap();
        assert_eq!(zeros, ByteSource::Zeros(2));
        assert_eq!(zeros.read().unwrap(), [0, 0]);
        for (text, bytes) in [("hex:ff", &[255u8][..]), ("", &[])] {
            let source = ByteSource::Bytes(bytes.to_vec());
            assert_eq!(ByteSource::parse(text).unwrap(), source, "{text}");
        }
        for wrong in ["no-such-file", "zero:x", "zero:99999999999", "hex:1"] {
            assert!(ByteSource::parse(wrong).is_err(), "{wrong}");
        }
    }
}
