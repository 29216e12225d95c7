//! Compressed output, chosen by the suffix of a file's name.
//!
//! gzip is written as one member. Zstandard is written as frames of at most
//! [`FRAME`] bytes of content, one after the other, so that memory stays bounded;
//! readers take a sequence of frames for one stream.

use std::io::{self, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::Compression;

/// Bytes of content of a Zstandard frame.
const FRAME: usize = 1 << 20;

impl Compression {
    /// The compression that the suffix of a name stands for: `.gz`, `.zst` or none.
    pub fn of_name(name: &Path) -> Compression {
        match name.extension().and_then(|suffix| suffix.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstandard,
            _ => Compression::None,
        }
    }
}

/// A writer that compresses. [`finish`](Compressor::finish) writes the end; without it
/// the output is truncated.
pub struct Compressor<W: Write>(Form<W>);

enum Form<W: Write> {
    Plain(W),
    Gzip(Box<GzEncoder<W>>),
    Zstandard { inner: W, content: Vec<u8> },
}

impl<W: Write> Compressor<W> {
    /// A writer that compresses what it is given and passes it on.
    pub fn new(inner: W, compression: Compression) -> Compressor<W> {
        Compressor(match compression {
            Compression::None => Form::Plain(inner),
            Compression::Gzip => {
                let level = flate2::Compression::default();
                Form::Gzip(Box::new(GzEncoder::new(inner, level)))
            }
            Compression::Zstandard => Form::Zstandard {
                inner,
                content: Vec::new(),
            },
        })
    }

    /// Writes what remains, and the end of the compressed stream.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Form::Plain(mut inner) => inner.flush(),
            Form::Gzip(encoder) => encoder.finish()?.flush(),
            Form::Zstandard {
                mut inner,
                mut content,
            } => {
                write_frame(&mut inner, &mut content)?;
                inner.flush()
            }
        }
    }
}

fn write_frame(inner: &mut impl Write, content: &mut Vec<u8>) -> io::Result<()> {
    if !content.is_empty() {
        inner.write_all(&compress_to_vec(&content[..], CompressionLevel::Fastest))?;
        content.clear();
    }
    Ok(())
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Plain(inner) => inner.write(bytes),
            Form::Gzip(encoder) => encoder.write(bytes),
            Form::Zstandard { inner, content } => {
                let taken = bytes.len().min(FRAME - content.len());
                content.extend_from_slice(&bytes[..taken]);
                if content.len() == FRAME {
                    write_frame(inner, content)?;
                }
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Form::Plain(inner) => inner.flush(),
            Form::Gzip(encoder) => encoder.flush(),
            Form::Zstandard { inner, content } => {
                write_frame(inner, content)?;
                inner.flush()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_compressed_is_read_back() -> io::Result<()> {
        let content: Vec<u8> = (0..3_000_000u32)
            .map(|at| (at.wrapping_mul(at) >> 9) as u8)
            .collect();
        for (name, compression) in [
            ("out.pcap", Compression::None),
            ("out.pcap.gz", Compression::Gzip),
            ("out.zst", Compression::Zstandard),
        ] {
            assert_eq!(Compression::of_name(Path::new(name)), compression);
            let mut bytes = Vec::new();
            let mut compressor = Compressor::new(&mut bytes, compression);
            for part in content.chunks(70_001) {
                compressor.write_all(part)?;
            }
            compressor.finish()?;
            assert_eq!(Compression::detect(&bytes), compression);
            let mut back = Vec::new();
            crate::decompress(&bytes[..])?.read_to_end(&mut back)?;
            assert!(back == content, "{name}");
        }
        Ok(())
    }
}
