//! Decompression of captures, recognised by content.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Compression of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Uncompressed.
    None,
    /// gzip, any number of members, with zeros behind them.
    Gzip,
    /// Zstandard, any number of frames.
    Zstandard,
    /// xz, of any number of streams.
    Xz,
    /// LZ4, of any number of frames.
    Lz4,
    /// bzip2, of any number of streams.
    Bzip2,
}

/// KiB that an xz stream may ask for: four times the dictionary of `xz -9`.
const XZ_MEMORY: u32 = 256 << 10;

impl Compression {
    /// Bytes at the start of a source that tell how it is compressed.
    pub const MAGIC: usize = 6;

    /// Compression of data that start with these bytes, by its magic number.
    pub fn detect(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // A skippable frame can start both Zstandard and LZ4; zstd writes some.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Compression::Zstandard
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // The frame format, and the legacy one.
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Compression::Lz4,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// Reader of the decompressed bytes of a source. The first bytes decide the compression.
pub fn decompress<'a>(source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    // Boxed, so that the decoders are compiled once and not for each kind of source.
    decompress_boxed(Box::new(source))
}

fn decompress_boxed<'a>(
    mut source: Box<dyn Read + Send + 'a>,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut start = [0; Compression::MAGIC];
    let mut len = 0;
    while len < start.len() {
        match source.read(&mut start[len..]) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let whole = Cursor::new(start[..len].to_vec()).chain(source);
    Ok(match Compression::detect(&start[..len]) {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(GzipMembers::new(buffered(whole))),
        Compression::Zstandard => Box::new(Frames::new(buffered(whole))),
        Compression::Xz => Box::new(XzReader::new_mem_limit(buffered(whole), true, XZ_MEMORY)),
        Compression::Lz4 => Box::new(Lz4Frames(Lz4Decoder::new(buffered(whole)))),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(buffered(whole))),
    })
}

fn buffered<R: Read>(source: R) -> BufReader<R> {
    BufReader::with_capacity(128 << 10, source)
}

/// gzip members one after the other. Zeros behind a member are padding, as for gzip(1).
struct GzipMembers<R> {
    /// The decoder of the present member; `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(source: R) -> GzipMembers<R> {
        GzipMembers {
            member: Some(GzDecoder::new(source)),
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else {
                return Ok(0);
            };
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let is_over = skip_zeros(member.get_mut())?;
            let source = self.member.take().map(GzDecoder::into_inner);
            self.member = source.filter(|_| !is_over).map(GzDecoder::new);
        }
    }
}

/// Skips zeros; true if nothing follows them.
fn skip_zeros(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let ahead = match source.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            ahead => ahead?,
        };
        let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
        if zeros < ahead.len() || zeros == 0 {
            let is_over = ahead.is_empty();
            source.consume(zeros);
            return Ok(is_over);
        }
        source.consume(zeros);
    }
}

/// LZ4 frames one after the other.
struct Lz4Frames<R: BufRead>(Lz4Decoder<R>);

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            // The decoder ends with each frame.
            let count = self.0.read(into)?;
            if count > 0 || into.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// Reader of consecutive Zstandard frames without the skippable ones.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    /// True if the decoder is inside a frame.
    within: bool,
    /// Error to return after the decoded bytes.
    fault: Option<io::Error>,
}

/// Empty last block and checksum. The decoder withholds the window that later blocks may
/// refer to until it sees the last block; after a truncated source this is decoded
/// instead, so that everything decoded is returned.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Frames<R> {
        Frames {
            source,
            decoder: FrameDecoder::new(),
            within: false,
            fault: None,
        }
    }

    /// Enters the next frame with content; false at the end of the source.
    fn enter(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.within = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Decodes the next block of the frame.
    fn decode(&mut self) -> io::Result<()> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let Err(error) = self.decoder.decode_blocks(&mut self.source, one) else {
            return Ok(());
        };
        let error = io::Error::other(error);
        let is_cut_short = self.source.fill_buf()?.is_empty();
        let rest = BlockDecodingStrategy::All;
        if is_cut_short && self.decoder.decode_blocks(&END_OF_FRAME[..], rest).is_ok() {
            self.fault = Some(error);
            return Ok(());
        }
        Err(error)
    }

    /// Leaves a decoded frame: returns the pending error, or checks the checksum.
    fn leave(&mut self) -> io::Result<()> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.within = false;
        let stated = self.decoder.get_checksum_from_data();
        if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "Zstandard frame has a wrong checksum",
            ));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.within && !self.enter()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decode()?;
            }
            let count = self.decoder.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            self.leave()?;
        }
    }
}
