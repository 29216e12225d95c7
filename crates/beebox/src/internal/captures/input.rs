//! Sources of captures: files and streams.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use capture::{Compression, Error, Event, Format, Framing, Interface, Reader};
use memmap2::Mmap;

use super::part::Place;
use super::positioned::read_at;

/// A capture whose header is read.
pub struct Input {
    pub(super) reader: Reader<Source>,
    file: Option<WholeFile>,
    /// The bytes of a capture that is no file of the system and not compressed.
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// True for a live stream: packets that match are written at once.
    pub(super) eager: bool,
}

impl Input {
    /// A capture in the file with a name, compressed or not.
    ///
    /// # Errors
    /// If the file cannot be read, which an error of the system names, or has another format.
    pub fn open_path(path: impl AsRef<Path>) -> Result<Input, crate::Error> {
        Ok(Input::try_open_path(path)?)
    }

    /// A capture in a file (or pipe, or terminal), compressed or not.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn open(file: File) -> Result<Input, crate::Error> {
        Ok(Input::try_open(file)?)
    }

    /// A capture from any source of bytes, compressed or not.
    ///
    /// # Errors
    /// If the source cannot be read, or its bytes have another format.
    pub fn stream(source: impl Read + Send + 'static) -> Result<Input, crate::Error> {
        Ok(Input::try_stream(source)?)
    }

    /// As [`Input::open_path`], with the error as data.
    #[doc(hidden)]
    pub fn try_open_path(path: impl AsRef<Path>) -> Result<Input, Error> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::Io { offset: 0, source });
        file.and_then(Input::try_open).map_err(|error| match error {
            Error::Io { offset, source } => {
                let text = format!("{}: {source}", path.display());
                let source = io::Error::new(source.kind(), text);
                Error::Io { offset, source }
            }
            Error::Fault(_) => error,
        })
    }

    /// As [`Input::open`], with the error as data.
    #[doc(hidden)]
    pub fn try_open(mut file: File) -> Result<Input, Error> {
        let failed = |source| Error::Io { offset: 0, source };
        let metadata = file.metadata().map_err(failed)?;
        let is_whole_file = metadata.is_file() && file.stream_position().is_ok_and(|at| at == 0);
        if is_whole_file {
            let mut start = [0; Compression::MAGIC];
            let known = read_at(&file, &mut start, 0).map_err(failed)?;
            if Compression::detect(&start[..known]) == Compression::None {
                let file = WholeFile::new(file, metadata.len());
                return Ok(Input {
                    reader: file.reader()?,
                    file: Some(file),
                    elsewhere: None,
                    eager: false,
                });
            }
        }
        Ok(Input {
            eager: !metadata.is_file(),
            ..Self::try_stream(file)?
        })
    }

    /// As [`Input::stream`], with the error as data.
    #[doc(hidden)]
    pub fn try_stream(source: impl Read + Send + 'static) -> Result<Input, Error> {
        let source =
            capture::decompress(source).map_err(|source| Error::Io { offset: 0, source })?;
        Ok(Input {
            reader: Reader::new(Source::Stream(source))?,
            file: None,
            elsewhere: None,
            eager: true,
        })
    }

    /// A capture in bytes that are elsewhere, compressed or not.
    #[doc(hidden)]
    pub fn open_elsewhere(bytes: Arc<dyn Elsewhere>) -> Result<Input, Error> {
        let failed = |source| Error::Io { offset: 0, source };
        let mut start = Vec::new();
        let magic = bytes.read_from(0).map_err(failed)?;
        let magic = magic.take(Compression::MAGIC as u64);
        io::copy(&mut { magic }, &mut start).map_err(failed)?;
        let input = Input::try_stream(bytes.read_from(0).map_err(failed)?)?;
        Ok(Input {
            elsewhere: (Compression::detect(&start) == Compression::None).then_some(bytes),
            eager: false,
            ..input
        })
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.reader.framing().format()
    }

    /// Its first interface; `None` if no packet follows, or none is there yet.
    #[doc(hidden)]
    pub fn first_interface(&mut self) -> Result<Option<Interface>, Error> {
        self.reader.first_interface()
    }

    /// Framing of its records.
    pub(crate) fn framing(&self) -> &Framing {
        self.reader.framing()
    }

    /// The next packet or block.
    #[doc(hidden)]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        self.reader.next()
    }

    /// Its length in bytes, if it is a file that is not compressed.
    pub fn len(&self) -> Option<u64> {
        self.file.as_ref().map(|file| file.len)
    }

    /// True if its length is known to be 0.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The file, if it is large enough for so many threads.
    pub(super) fn splittable(&self, jobs: usize, segment: u64) -> Option<WholeFile> {
        let file = self.file.as_ref()?;
        let worth_it = jobs > 1 && file.len >= 2 * segment;
        worth_it.then(|| file.clone())
    }

    /// The number of threads that filtering it uses, at most `jobs`.
    pub fn threads(&self, jobs: usize) -> usize {
        match self.splittable(jobs, super::SEGMENT) {
            Some(_) => jobs,
            None => 1,
        }
    }

    /// Offset of the next record or block in the (decompressed) capture.
    pub(crate) fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// The file, if it is one that is not compressed, and the place of the next record.
    pub(crate) fn place(&self) -> Option<(Arc<File>, Place)> {
        let file = Arc::clone(&self.file.as_ref()?.file);
        let (offset, framing) = (self.offset(), self.framing().clone());
        Some((file, Place { offset, framing }))
    }

    /// True if it can be read from any place: it is not compressed, and no pipe.
    #[doc(hidden)]
    pub fn is_seekable(&self) -> bool {
        self.file.is_some() || self.elsewhere.is_some()
    }

    /// Length in bytes of a seekable capture.
    #[doc(hidden)]
    pub fn seekable_len(&self) -> io::Result<Option<u64>> {
        let elsewhere = self.elsewhere.as_ref();
        let elsewhere = elsewhere.map(|elsewhere| elsewhere.length()).transpose()?;
        Ok(self.len().or(elsewhere))
    }

    /// Bytes of a seekable capture, as far as there are.
    pub(super) fn bytes(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        if let Some(file) = &self.file {
            return file.bytes(range);
        }
        let mut bytes = Vec::new();
        if let Some(elsewhere) = &self.elsewhere {
            let rest = elsewhere.read_from(range.start)?;
            rest.take(range.end - range.start).read_to_end(&mut bytes)?;
        }
        Ok(bytes.into())
    }

    /// Goes to the record at an offset of a seekable capture, with the framing there, to read as
    /// far as `end`.
    pub(super) fn seek(&mut self, (at, end): (u64, u64), framing: Framing) -> io::Result<()> {
        if let Some(elsewhere) = &self.elsewhere {
            let source = Source::Stream(elsewhere.read_from(at)?);
            self.reader = Reader::resume(source, at, framing);
        } else if let Some(file) = &self.file {
            let mut reader = None;
            file.reader_at(&mut reader, (at, end), framing);
            self.reader = reader.expect("one was made");
        }
        Ok(())
    }

    /// True if the file is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        self.file.as_ref().is_some_and(WholeFile::is_mapped)
    }
}

/// Bytes that can be read from any offset, such as an object of a store.
#[doc(hidden)]
pub trait Elsewhere: Send + Sync {
    /// A reader of the bytes from an offset on; others may be made before it ends.
    fn read_from(&self, offset: u64) -> io::Result<Box<dyn Read + Send>>;

    /// Number of bytes.
    fn length(&self) -> io::Result<u64>;
}

/// A file that can be read from any place.
#[derive(Clone)]
pub(super) struct WholeFile {
    file: Arc<File>,
    /// `None` if it can't be mapped (on some special file systems).
    mapping: Option<Arc<Mmap>>,
    pub(super) len: u64,
}

impl WholeFile {
    fn new(file: File, len: u64) -> WholeFile {
        let mapping = sys::mapping::map(&file).ok();
        let mapping = mapping.filter(|mapping| mapping.len() as u64 >= len && len > 0);
        WholeFile {
            file: Arc::new(file),
            mapping: mapping.map(Arc::new),
            len,
        }
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.mapping.is_some()
    }

    fn reader(&self) -> Result<Reader<Source>, Error> {
        match &self.mapping {
            Some(mapping) => Reader::from_mapping(mapping.clone()),
            None => Reader::new(self.part(0, u64::MAX)),
        }
    }

    /// Moves `reader` (or a new one) to the record at `at`, with the framing known there,
    /// for reading the part up to `end`.
    pub(super) fn reader_at<'r>(
        &self,
        reader: &'r mut Option<Reader<Source>>,
        (at, end): (u64, u64),
        framing: Framing,
    ) -> &'r mut Reader<Source> {
        match (&self.mapping, reader) {
            (Some(mapping), reader) => {
                reader.insert(Reader::resume_mapping(mapping.clone(), at, framing))
            }
            (None, Some(reader)) => {
                reader.restart(self.part(at, end), at, framing);
                reader
            }
            (None, reader) => reader.insert(Reader::resume(self.part(at, end), at, framing)),
        }
    }

    /// Its bytes in a range, as far as there are.
    fn bytes(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        if let Some(mapping) = &self.mapping {
            let end = range.end.min(mapping.len() as u64) as usize;
            return Ok(mapping[(range.start as usize).min(end)..end].into());
        }
        let mut bytes = Vec::new();
        let source = self.part(range.start, range.end);
        source
            .take(range.end - range.start)
            .read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }

    fn part(&self, at: u64, end: u64) -> Source {
        Source::File(FileRange::new(self.file.clone(), at, end))
    }
}

/// Bytes of a capture.
pub(super) enum Source {
    File(FileRange),
    Stream(Box<dyn Read + Send>),
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(range) => range.read(into),
            Source::Stream(stream) => stream.read(into),
        }
    }
}

/// A part of a file, and what follows it as far as the last record reaches.
pub(super) struct FileRange {
    file: Arc<File>,
    at: u64,
    /// End of the part. Beyond it, reads are small: only the rest of one record is
    /// needed.
    end: u64,
}

const BEYOND: usize = 16 << 10;

impl FileRange {
    pub(super) fn new(file: Arc<File>, at: u64, end: u64) -> FileRange {
        FileRange { file, at, end }
    }
}

impl Read for FileRange {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let inside = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let len = if inside > 0 { inside } else { BEYOND };
        let len = len.min(into.len());
        let count = read_at(&self.file, &mut into[..len], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
