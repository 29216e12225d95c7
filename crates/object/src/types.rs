//! BTF and BTF.ext of an object.
//!
//! A damaged BTF section is an error only if BTF is required: by maps, struct_ops and
//! typed externs.

use std::fmt;

use btf::ext::ExtError;
use btf::{Btf, BtfExt, Kind, ParseError};
use spec::Errno;
use spec::loader::LoaderRules;

use crate::elf::{Elf, SectionId};
use crate::error::{Blame, Error};
use crate::sections::{Role, Sections};

/// Fault of BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtfFault {
    /// BTF is required and missing.
    Missing,
    /// `.BTF` is malformed.
    Btf(ParseError),
    /// `.BTF` has an enumeration of 64 bits, which the loader does not know.
    Enum64,
    /// `.BTF.ext` is malformed.
    Ext(ExtError),
}

impl BtfFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        Blame::File
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            BtfFault::Missing => Errno::ENOENT,
            BtfFault::Btf(ParseError::ForeignByteOrder) => Errno::EOPNOTSUPP,
            BtfFault::Btf(_) | BtfFault::Enum64 | BtfFault::Ext(_) => Errno::EINVAL,
        }
    }
}

impl fmt::Display for BtfFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BtfFault::Missing => write!(
                f,
                "maps require BTF, and section .BTF is missing: compile with -g"
            ),
            BtfFault::Btf(error) => error.fmt(f),
            BtfFault::Enum64 => {
                write!(f, "enumeration of 64 bits, which this loader does not know")
            }
            BtfFault::Ext(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BtfFault {}

/// BTF and BTF.ext.
type Types<'a> = (Option<Btf<'a>>, Option<BtfExt<'a>>);

/// Reads both sections. A malformed section that is not required is omitted.
pub(crate) fn read_types<'a>(
    elf: &Elf<'a>,
    sections: &Sections,
    rules: &LoaderRules,
) -> Result<Types<'a>, Error> {
    let is_needed = sections.maps.is_some() || sections.with_role(Role::StructOps).next().is_some();
    let parsed = bytes(elf, sections.btf).map(Btf::parse);
    let is_known = |types: &Btf<'_>| {
        let mut kinds = types.types().map(|ty| ty.kind());
        rules.has_enum64 || !kinds.any(|kind| kind == Kind::Enum64)
    };
    let types = parsed.map(|parsed| match parsed {
        Ok(types) if is_known(&types) => Ok(types),
        Ok(_) => Err(BtfFault::Enum64),
        Err(error) => Err(BtfFault::Btf(error)),
    });
    let types = match types {
        Some(Ok(types)) => types,
        Some(Err(fault)) if is_needed => return Err(Error::new(fault).in_section(".BTF")),
        None if is_needed => return Err(BtfFault::Missing.into()),
        _ => return Ok((None, None)),
    };
    match bytes(elf, sections.btf_ext).map(BtfExt::parse) {
        Some(Err(error)) if is_needed => {
            Err(Error::new(BtfFault::Ext(error)).in_section(".BTF.ext"))
        }
        Some(Ok(ext)) => Ok((Some(types), Some(ext))),
        _ => Ok((Some(types), None)),
    }
}

fn bytes<'a>(elf: &Elf<'a>, id: Option<SectionId>) -> Option<&'a [u8]> {
    elf.section(id?)?.data().ok()
}
