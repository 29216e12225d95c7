//! The code section of an ELF object, for programs that need nothing else of
//! their object: no maps, no globals, no functions of other sections. A section
//! with relocations is refused, since without them it would be another program.
//!
//! The layout is that of the System V ABI: 64 bits, little-endian.

use std::fmt;

use interp::checked::CheckedProgram;

use super::form::ProgramReadError;

/// The ELF magic number.
pub(super) const MAGIC: &[u8] = b"\x7fELF";

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const EM_BPF: u16 = 247;
const SHT_PROGBITS: u32 = 1;
const SHT_RELA: u32 = 4;
const SHT_REL: u32 = 9;
const SHF_EXECINSTR: u64 = 4;
const SECTION_HEADER: usize = 64;

/// Reads the program in one section of an object: the one with that name, or
/// else the first one that holds code.
pub fn elf_program(file: &[u8], section: Option<&str>) -> Result<CheckedProgram, ProgramReadError> {
    Ok(CheckedProgram::from_bytes(code(file, section)?)?)
}

fn code<'f>(file: &'f [u8], wanted: Option<&str>) -> Result<&'f [u8], ElfError> {
    if !file.starts_with(MAGIC) {
        return Err(ElfError::NoObject);
    }
    let identity = (byte(file, 4)?, byte(file, 5)?, half(file, 18)?);
    if identity != (CLASS_64, LITTLE_ENDIAN, EM_BPF) {
        return Err(ElfError::NotBpf);
    }
    let sections = sections(file)?;
    let names = usize::from(half(file, 62)?);
    let names = sections.get(names).ok_or(ElfError::NoNames)?.bytes(file)?;
    let is_wanted = |section: &Section| match wanted {
        Some(name) => section.name(names) == name.as_bytes(),
        None => section.holds_code() && section.size > 0,
    };
    let index = sections.iter().position(is_wanted);
    let index = index.ok_or_else(|| ElfError::NoCode {
        section: wanted.map(str::to_owned),
    })?;
    let is_relocated = |section: &Section| {
        matches!(section.kind, SHT_REL | SHT_RELA)
            && section.info as usize == index
            && section.size > 0
    };
    if sections.iter().any(is_relocated) {
        let name = String::from_utf8_lossy(sections[index].name(names)).into_owned();
        return Err(ElfError::Relocations { section: name });
    }
    sections[index].bytes(file)
}

struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    offset: u64,
    size: u64,
    info: u32,
}

impl Section {
    fn holds_code(&self) -> bool {
        self.kind == SHT_PROGBITS && self.flags & SHF_EXECINSTR != 0
    }

    fn bytes<'f>(&self, file: &'f [u8]) -> Result<&'f [u8], ElfError> {
        part(file, self.offset, self.size)
    }

    /// Its name in the table of names; empty if it is not there.
    fn name<'f>(&self, names: &'f [u8]) -> &'f [u8] {
        let rest = names.get(self.name as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

fn sections(file: &[u8]) -> Result<Vec<Section>, ElfError> {
    let count = u64::from(half(file, 60)?);
    let headers = part(file, long(file, 40)?, count * SECTION_HEADER as u64)?;
    headers
        .chunks_exact(SECTION_HEADER)
        .map(|header| {
            Ok(Section {
                name: word(header, 0)?,
                kind: word(header, 4)?,
                flags: long(header, 8)?,
                offset: long(header, 24)?,
                size: long(header, 32)?,
                info: word(header, 44)?,
            })
        })
        .collect()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ElfError> {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.first_chunk().copied().ok_or(ElfError::Truncated {
        end: (at + N) as u64,
        len: bytes.len(),
    })
}

/// The bytes of the file from an offset on.
fn part(file: &[u8], offset: u64, size: u64) -> Result<&[u8], ElfError> {
    let end = offset.saturating_add(size);
    let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    let bytes = range.and_then(|(start, end)| file.get(start..end));
    bytes.ok_or(ElfError::Truncated {
        end,
        len: file.len(),
    })
}

fn byte(bytes: &[u8], at: usize) -> Result<u8, ElfError> {
    array(bytes, at).map(u8::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> Result<u16, ElfError> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, ElfError> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Result<u64, ElfError> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// Reason why an object has no program that can be read alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// It is no ELF file.
    NoObject,
    /// It is not for BPF, little-endian.
    NotBpf,
    /// It is shorter than its headers say.
    Truncated {
        /// End of a part of it in bytes from the start.
        end: u64,
        /// Its length in bytes.
        len: usize,
    },
    /// The index of its section names is not that of a section.
    NoNames,
    /// No section has that name, or none holds code.
    NoCode {
        /// The requested name.
        section: Option<String>,
    },
    /// The section refers to other parts of the object.
    Relocations {
        /// Its name.
        section: String,
    },
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NoObject => f.write_str("this file has no ELF magic number"),
            ElfError::NotBpf => f.write_str(
                "ELF file is no little-endian BPF object: compile it with -target bpfel",
            ),
            ElfError::Truncated { end, len } => write!(
                f,
                "truncated ELF object: a part of it ends at byte {end}, the file has {len}"
            ),
            ElfError::NoNames => f.write_str("the ELF object has no section names"),
            ElfError::NoCode { section: None } => {
                f.write_str("the ELF object has no executable section")
            }
            ElfError::NoCode {
                section: Some(name),
            } => write!(f, "the ELF object has no section {name:?}"),
            ElfError::Relocations { section } => write!(
                f,
                "section {section:?} has relocations: link the object to run it"
            ),
        }
    }
}

impl std::error::Error for ElfError {}
