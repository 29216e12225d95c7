//! Compressed captures, told by content.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How a capture is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of any number of members.
    Gzip,
    /// Zstandard, of any number of frames.
    Zstandard,
}

impl Compression {
    /// Tells by the first bytes.
    pub fn detect(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Compression::Zstandard
            }
            _ => Compression::None,
        }
    }
}

/// The decompressed bytes of a source, whose first bytes decide how.
pub fn decompress<'a>(mut source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut start = [0; 4];
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
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(whole))),
        Compression::Zstandard => Box::new(Frames::new(buffered(whole))),
    })
}

fn buffered<R: Read>(source: R) -> BufReader<R> {
    BufReader::with_capacity(128 << 10, source)
}

/// Zstandard frames one after the other, skippable ones left out.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    /// The decoder is inside a frame.
    within: bool,
    /// What is said when all that was decoded is delivered.
    fault: Option<io::Error>,
}

/// A last block without content, and a checksum. The decoder holds back as much
/// as later blocks may refer to, until it sees the last one; where a source ends
/// too soon, this stands in for it.
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

    /// Goes to the next frame with content; false at the end of the source.
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

    /// Leaves a frame that is decoded as far as it goes.
    fn leave(&mut self) -> io::Result<()> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.within = false;
        let stated = self.decoder.get_checksum_from_data();
        if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum of a Zstandard frame is wrong",
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
