//! The types of an object, and what its instructions have to do with them.
//!
//! A damaged section of types is a fault only where types are needed: maps, tables
//! of functions and what the kernel has are described by them alone.

use std::fmt;

use btf::ext::ExtError;
use btf::{Btf, BtfExt, ParseError};

use crate::elf::{Elf, SectionId};
use crate::error::{Blame, Error};
use crate::sections::{Role, Sections};

/// What is wrong with the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypesFault {
    /// They are needed and missing.
    Missing,
    /// `.BTF` can't be read.
    Btf(ParseError),
    /// `.BTF.ext` can't be read.
    Ext(ExtError),
}

impl TypesFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        Blame::File
    }

    /// The number of the error with which libbpf ends.
    pub fn errno(&self) -> i32 {
        match self {
            TypesFault::Missing => 2,
            TypesFault::Btf(ParseError::ForeignByteOrder) => 95,
            TypesFault::Btf(_) | TypesFault::Ext(_) => 22,
        }
    }
}

impl fmt::Display for TypesFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypesFault::Missing => write!(
                f,
                "the maps need types, and there is no section .BTF: compile with -g"
            ),
            TypesFault::Btf(error) => error.fmt(f),
            TypesFault::Ext(error) => error.fmt(f),
        }
    }
}

/// The types of an object and of its instructions.
type Types<'a> = (Option<Btf<'a>>, Option<BtfExt<'a>>);

/// Reads both sections. What can't be read and is not needed is left out.
pub(crate) fn read_types<'a>(elf: &Elf<'a>, sections: &Sections) -> Result<Types<'a>, Error> {
    let is_needed = sections.maps.is_some() || sections.with_role(Role::StructOps).next().is_some();
    let types = bytes(elf, sections.types).map(Btf::parse);
    let types = match types {
        Some(Ok(types)) => types,
        Some(Err(error)) if is_needed => {
            return Err(Error::new(TypesFault::Btf(error)).in_section(".BTF"));
        }
        None if is_needed => return Err(TypesFault::Missing.into()),
        _ => return Ok((None, None)),
    };
    match bytes(elf, sections.types_of_code).map(BtfExt::parse) {
        Some(Err(error)) if is_needed => {
            Err(Error::new(TypesFault::Ext(error)).in_section(".BTF.ext"))
        }
        Some(Ok(ext)) => Ok((Some(types), Some(ext))),
        _ => Ok((Some(types), None)),
    }
}

fn bytes<'a>(elf: &Elf<'a>, id: Option<SectionId>) -> Option<&'a [u8]> {
    elf.section(id?)?.data().ok()
}
