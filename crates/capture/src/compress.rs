//! Compressed output, selected by the suffix of a file name.
//!
//! gzip is written as one member. Zstandard is written as consecutive frames of at most
//! [`FRAME`] bytes of content, which bounds memory; decoders read consecutive frames as
//! one stream.

use std::io::{self, Write};
use std::path::Path;
use std::{error, fmt};

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes of content of a Zstandard frame.
const FRAME: usize = 1 << 20;

/// Compression of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputCompression {
    /// Uncompressed.
    None,
    /// gzip, one member.
    Gzip,
    /// Zstandard.
    Zstandard,
}

/// The suffix of a compression that is read but not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOnlySuffix(pub &'static str);

impl fmt::Display for ReadOnlySuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "captures in .{} are read, but not written", self.0)
    }
}

impl error::Error for ReadOnlySuffix {}

impl OutputCompression {
    /// The compression that the suffix of a name stands for: `.gz`, `.zst` or none.
    pub fn from_name(name: &Path) -> Result<OutputCompression, ReadOnlySuffix> {
        let suffix = name.extension().and_then(|suffix| suffix.to_str());
        match suffix {
            Some("gz") => Ok(OutputCompression::Gzip),
            Some("zst") => Ok(OutputCompression::Zstandard),
            Some("xz") => Err(ReadOnlySuffix("xz")),
            Some("lz4") => Err(ReadOnlySuffix("lz4")),
            Some("bz2") => Err(ReadOnlySuffix("bz2")),
            _ => Ok(OutputCompression::None),
        }
    }
}

/// Compressing writer. [`finish`](Compressor::finish) ends the stream; without it the
/// output is truncated.
pub struct Compressor<W: Write>(Form<W>);

enum Form<W: Write> {
    Plain(W),
    Gzip(Box<GzEncoder<W>>),
    Zstandard { inner: W, content: Vec<u8> },
}

impl<W: Write> Compressor<W> {
    /// Compressing writer to `inner`.
    pub fn new(inner: W, compression: OutputCompression) -> Compressor<W> {
        Compressor(match compression {
            OutputCompression::None => Form::Plain(inner),
            OutputCompression::Gzip => {
                let level = flate2::Compression::default();
                Form::Gzip(Box::new(GzEncoder::new(inner, level)))
            }
            OutputCompression::Zstandard => Form::Zstandard {
                inner,
                content: Vec::new(),
            },
        })
    }

    /// Writes the remaining bytes and the end of the compressed stream.
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
                let len = bytes.len().min(FRAME - content.len());
                content.extend_from_slice(&bytes[..len]);
                if content.len() == FRAME {
                    write_frame(inner, content)?;
                }
                Ok(len)
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
    use crate::Compression;
    use std::io::Read;

    #[test]
    fn compressed_output_decompresses_to_the_input() -> io::Result<()> {
        let content: Vec<u8> = (0..3_000_000u32)
            .map(|at| (at.wrapping_mul(at) >> 9) as u8)
            .collect();
        for (name, compression, detected) in [
            ("out.pcap", OutputCompression::None, Compression::None),
            ("out.pcap.gz", OutputCompression::Gzip, Compression::Gzip),
            (
                "out.zst",
                OutputCompression::Zstandard,
                Compression::Zstandard,
            ),
        ] {
            assert_eq!(
                OutputCompression::from_name(Path::new(name)),
                Ok(compression)
            );
            let mut bytes = Vec::new();
            let mut compressor = Compressor::new(&mut bytes, compression);
            for part in content.chunks(70_001) {
                compressor.write_all(part)?;
            }
            compressor.finish()?;
            assert_eq!(Compression::detect(&bytes), detected);
            let mut back = Vec::new();
            crate::decompress(&bytes[..])?.read_to_end(&mut back)?;
            assert!(back == content, "{name}");
        }
        Ok(())
    }

    /// Counts what it is given.
    #[derive(Default)]
    struct Counter(usize);

    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_is_passed_on_before_its_end() -> io::Result<()> {
        let mut counter = Counter::default();
        let mut compressor = Compressor::new(&mut counter, OutputCompression::Zstandard);
        let mut random = 1u32;
        for round in 1..=16 {
            let mut portion = vec![0; FRAME];
            for byte in &mut portion {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (random >> 24) as u8;
            }
            compressor.write_all(&portion)?;
            let Form::Zstandard { inner, content } = &compressor.0 else {
                unreachable!("as asked for");
            };
            assert!(content.len() < FRAME && content.capacity() <= 2 * FRAME);
            assert!(inner.0 >= round * FRAME, "{} after {round}", inner.0);
        }
        Ok(())
    }

    #[test]
    fn read_only_compressions_are_refused() {
        for suffix in ["xz", "lz4", "bz2"] {
            let name = format!("out.pcap.{suffix}");
            let refused = OutputCompression::from_name(Path::new(&name));
            assert_eq!(refused, Err(ReadOnlySuffix(suffix)));
        }
    }
}
