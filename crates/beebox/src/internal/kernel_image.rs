//! Kernel images as distributions install them: bzImage of x86 (`/boot/vmlinuz-*`).
//!
//! The setup header (Documentation/arch/x86/boot.rst) has the place of the payload, a
//! compressed `vmlinux` behind whose last byte its size stands, and of the release string. A
//! compressed `vmlinux` without a header is read too. Linear in the decompressed size, which
//! is limited.

use std::fmt;
use std::io::{self, Read};

use capture::{Compression, decompress};

/// Most bytes of a decompressed kernel.
const MOST_BYTES: u64 = 1 << 30;
/// Offset of the number of setup sectors, and the number that 0 stands for.
const SETUP_SECTORS: (usize, u8) = (0x1f1, 4);
/// Size of a setup sector in bytes.
const SECTOR: usize = 512;
/// Offset and bytes of the signature of the setup header.
const SIGNATURE: (usize, &[u8]) = (0x202, b"HdrS");
/// Offset of the protocol's version, and the first one whose header has the payload's place.
const PROTOCOL: (usize, u16) = (0x206, 0x0208);
/// Offset of the place of the release string, which is relative to [`SECTOR`].
const RELEASE: usize = 0x20e;
/// Offsets of the payload's place, relative to the end of the setup sectors, and length.
const PAYLOAD: (usize, usize) = (0x248, 0x24c);

/// A kernel image, decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// The `vmlinux`, an ELF file.
    pub elf: Vec<u8>,
    /// Release, as `uname -r` prints it; `None` if the image states none.
    pub release: Option<String>,
}

/// Error of reading a kernel image.
#[derive(Debug)]
pub enum ImageFault {
    /// The header is older than 2.08 (Linux 2.6.26) and has no place of the payload.
    OldHeader {
        /// Version of the boot protocol, the major one in the high byte.
        protocol: u16,
    },
    /// The header states a payload that the file does not have.
    Cut {
        /// Offset of the payload's end in bytes.
        end: u64,
        /// Size of the file in bytes.
        len: u64,
    },
    /// The payload has a compression that is not read.
    Compression {
        /// Its name, if it is known.
        name: Option<&'static str>,
    },
    /// The decompressed kernel exceeds the limit.
    TooLarge {
        /// Stated size in bytes.
        size: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// The payload is damaged.
    Damaged(io::Error),
    /// The payload is no ELF file.
    NotElf,
}

impl fmt::Display for ImageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageFault::OldHeader { protocol } => write!(
                f,
                "kernel image has boot protocol {}.{:02}, which does not state where its kernel is",
                protocol >> 8,
                protocol & 0xff
            ),
            ImageFault::Cut { end, len } => write!(
                f,
                "kernel image is cut: its kernel ends at byte {end}, the file has {len}"
            ),
            ImageFault::Compression { name: Some(name) } => write!(
                f,
                "kernel in the image is compressed as {name}; gzip, lz4, zstd, xz and bzip2 are read"
            ),
            ImageFault::Compression { name: None } => {
                f.write_str("kernel in the image has an unknown compression")
            }
            ImageFault::TooLarge { size, limit } => write!(
                f,
                "kernel in the image has {size} bytes, more than the limit of {limit}"
            ),
            ImageFault::Damaged(error) => write!(f, "kernel in the image is damaged: {error}"),
            ImageFault::NotElf => f.write_str("kernel in the image is no ELF file"),
        }
    }
}

impl std::error::Error for ImageFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ImageFault::Damaged(error) => Some(error),
            ImageFault::OldHeader { .. }
            | ImageFault::Cut { .. }
            | ImageFault::Compression { .. }
            | ImageFault::TooLarge { .. }
            | ImageFault::NotElf => None,
        }
    }
}

impl KernelImage {
    /// Reads a bzImage, or a compressed `vmlinux`; `None` if the bytes are neither.
    ///
    /// # Errors
    /// If the bytes are one and its kernel cannot be read.
    pub fn read(file: &[u8]) -> Result<Option<KernelImage>, ImageFault> {
        let (at, signature) = SIGNATURE;
        if file
            .get(at..)
            .is_some_and(|rest| rest.starts_with(signature))
        {
            return bz_image(file).map(Some);
        }
        match Compression::detect(file) {
            Compression::None => Ok(None),
            _ => Ok(Some(KernelImage {
                elf: elf(file, MOST_BYTES)?,
                release: None,
            })),
        }
    }
}

fn bz_image(file: &[u8]) -> Result<KernelImage, ImageFault> {
    let protocol = half(file, PROTOCOL.0);
    if protocol < PROTOCOL.1 {
        return Err(ImageFault::OldHeader { protocol });
    }
    let sectors = match file[SETUP_SECTORS.0] {
        0 => SETUP_SECTORS.1,
        sectors => sectors,
    };
    let start = (usize::from(sectors) + 1) * SECTOR + word(file, PAYLOAD.0) as usize;
    let end = start + word(file, PAYLOAD.1) as usize;
    let payload = file.get(start..end).ok_or(ImageFault::Cut {
        end: end as u64,
        len: file.len() as u64,
    })?;
    check_compression(payload)?;
    // The last word is the size: the trailer of gzip, or appended behind other formats.
    let size = match payload.last_chunk::<4>() {
        Some(size) => u64::from(u32::from_le_bytes(*size)),
        None => return Err(ImageFault::Compression { name: None }),
    };
    if size > MOST_BYTES {
        let limit = MOST_BYTES;
        return Err(ImageFault::TooLarge { size, limit });
    }
    let elf = elf(payload, size)?;
    if (elf.len() as u64) < size {
        return Err(ImageFault::Damaged(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(KernelImage {
        elf,
        release: release(file),
    })
}

/// The first word of the string that the header refers to.
fn release(file: &[u8]) -> Option<String> {
    let at = usize::from(half(file, RELEASE));
    let text = file.get(at.checked_add(SECTOR)?..).filter(|_| at != 0)?;
    let end = text.iter().position(|byte| matches!(byte, b' ' | 0))?;
    let release = std::str::from_utf8(&text[..end]).ok()?;
    (!release.is_empty()).then(|| release.to_owned())
}

/// Checks that the compression of a payload is one that is read.
fn check_compression(payload: &[u8]) -> Result<(), ImageFault> {
    if Compression::detect(payload) != Compression::None {
        return Ok(());
    }
    let name = match payload {
        [0x5d, 0, 0, ..] => Some("lzma"),
        [0x89, b'L', b'Z', b'O', ..] => Some("lzo"),
        _ => None,
    };
    Err(ImageFault::Compression { name })
}

/// The first `size` bytes of a compressed ELF file.
fn elf(compressed: &[u8], size: u64) -> Result<Vec<u8>, ImageFault> {
    let mut elf = Vec::new();
    let reader = decompress(compressed).map_err(ImageFault::Damaged)?;
    let read = reader.take(size).read_to_end(&mut elf);
    read.map_err(ImageFault::Damaged)?;
    match elf.starts_with(b"\x7fELF") {
        true => Ok(elf),
        false => Err(ImageFault::NotElf),
    }
}

/// The little-endian half word at an offset; 0 beyond the end.
fn half(file: &[u8], at: usize) -> u16 {
    let bytes = file.get(at..).and_then(|rest| rest.first_chunk());
    u16::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// The little-endian word at an offset; 0 beyond the end.
fn word(file: &[u8], at: usize) -> u32 {
    let bytes = file.get(at..).and_then(|rest| rest.first_chunk());
    u32::from_le_bytes(bytes.copied().unwrap_or_default())
}
