//! BTF in files: bare, in ELF files and in kernel images.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use btf::ext::ExtError;
use btf::{Btf, BtfExt, ParseError};
use elf_file::{Object, ObjectSection};
use spec::kernel::KernelVersion;
use sys::mapping::KernelFile;

use crate::internal::MOST_BYTES;
#[cfg(feature = "decompress")]
use crate::internal::kernel_image::{ImageFault, KernelImage};

/// The directory of the running kernel's BTF.
const KERNEL_TYPES: &str = "/sys/kernel/btf";

/// BTF and BTF.ext of a file.
#[derive(Debug)]
pub struct TypeFile {
    /// The types.
    pub btf: Btf<'static>,
    /// The section `.BTF.ext` of an ELF file.
    pub ext: Option<BtfExt<'static>>,
    /// The version of Linux that the file is an image of, if it says one.
    pub version: Option<KernelVersion>,
}

impl TypeFile {
    /// Reads a file, or standard input if the path is `-`. Files below `/sys/kernel/btf` are mapped
    /// until the process ends.
    ///
    /// # Errors
    /// If it cannot be read, or has no valid BTF.
    pub fn open(path: impl AsRef<Path>) -> Result<TypeFile, TypeFileError> {
        let path = path.as_ref();
        if path.starts_with(KERNEL_TYPES) {
            let file = KernelFile::open(path).map_err(TypeFileError::File)?;
            let file = Box::leak(Box::new(file));
            return Ok(TypeFile {
                btf: Btf::parse(&**file).map_err(TypeFileError::Btf)?,
                ext: None,
                version: None,
            });
        }
        TypeFile::parse(sys::input::read(path, MOST_BYTES).map_err(TypeFileError::File)?)
    }

    /// Reads bytes: BTF, an ELF file with a section `.BTF`, or a kernel image.
    ///
    /// # Errors
    /// If they have no valid BTF.
    pub fn parse(bytes: Vec<u8>) -> Result<TypeFile, TypeFileError> {
        #[cfg(not(feature = "decompress"))]
        let (stated, is_image, bytes) = (None, false, bytes);
        #[cfg(feature = "decompress")]
        let (stated, is_image, bytes) = {
            let image = KernelImage::read(&bytes).map_err(TypeFileError::Image)?;
            let stated = image.as_ref().and_then(|image| image.release.as_deref());
            let stated = stated.and_then(|release| release.parse().ok());
            (
                stated,
                image.is_some(),
                image.map_or(bytes, |image| image.elf),
            )
        };
        let mut version = None;
        let (blob, ext) = if bytes.starts_with(b"\x7fELF") {
            let file = elf_file::File::parse(&*bytes)
                .map_err(|error| TypeFileError::Elf(error.to_string()))?;
            if !file.is_little_endian() {
                return Err(TypeFileError::BigEndian);
            }
            let blob = section(&file, ".BTF")?.ok_or(TypeFileError::NoBtf { is_image })?;
            version = banner_version(&bytes);
            (blob, section(&file, ".BTF.ext")?)
        } else {
            (bytes, None)
        };
        Ok(TypeFile {
            btf: Btf::parse(blob).map_err(TypeFileError::Btf)?,
            ext: ext
                .map(BtfExt::parse)
                .transpose()
                .map_err(TypeFileError::Ext)?,
            version: stated.or(version),
        })
    }
}

/// The version in the banner of a kernel image (`linux_banner`: `Linux version 6.18.44
/// (user@host) …`).
fn banner_version(image: &[u8]) -> Option<KernelVersion> {
    const BANNER: &[u8] = b"Linux version ";
    let mut starts = (0..image.len()).filter(|&at| image[at..].starts_with(BANNER));
    starts.find_map(|at| {
        let rest = image.get(at + BANNER.len()..)?;
        let end = rest.iter().position(|byte| matches!(byte, b' ' | 0))?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
    })
}

fn section(file: &elf_file::File<'_>, name: &str) -> Result<Option<Vec<u8>>, TypeFileError> {
    let Some(section) = file.section_by_name(name) else {
        return Ok(None);
    };
    let data = section
        .uncompressed_data()
        .map_err(|error| TypeFileError::Section(name.to_owned(), error.to_string()))?;
    Ok(Some(data.into_owned()))
}

/// Reason why a file has no BTF that is read.
#[derive(Debug)]
#[non_exhaustive]
pub enum TypeFileError {
    /// The file cannot be read.
    File(io::Error),
    /// The kernel in an image cannot be read.
    #[cfg(feature = "decompress")]
    Image(ImageFault),
    /// The ELF file is damaged, for the reason in the text.
    Elf(String),
    /// The ELF file is one of a big-endian machine.
    BigEndian,
    /// The ELF file has no section `.BTF`.
    NoBtf {
        /// True if it is the kernel in an image.
        is_image: bool,
    },
    /// A section, by name, is damaged for the reason in the text.
    Section(String, String),
    /// The BTF is not valid.
    Btf(ParseError),
    /// The section `.BTF.ext` is not valid.
    Ext(ExtError),
}

impl fmt::Display for TypeFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeFileError::File(error) => error.fmt(f),
            #[cfg(feature = "decompress")]
            TypeFileError::Image(fault) => fault.fmt(f),
            TypeFileError::Elf(error) => write!(f, "the ELF file is damaged: {error}"),
            TypeFileError::BigEndian => write!(
                f,
                "ELF file of a big-endian machine: only little-endian ones are read"
            ),
            TypeFileError::NoBtf { is_image: true } => {
                write!(f, "the kernel in the image has no section .BTF")
            }
            TypeFileError::NoBtf { is_image: false } => {
                write!(f, "ELF file without a section .BTF")
            }
            TypeFileError::Section(name, error) => write!(f, "{name}: {error}"),
            TypeFileError::Btf(error) => error.fmt(f),
            TypeFileError::Ext(error) => write!(f, ".BTF.ext: {error}"),
        }
    }
}

impl Error for TypeFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TypeFileError::File(error) => Some(error),
            #[cfg(feature = "decompress")]
            TypeFileError::Image(fault) => Some(fault),
            TypeFileError::Btf(error) => Some(error),
            TypeFileError::Ext(error) => Some(error),
            _ => None,
        }
    }
}
