//! Faults of maps.

use std::fmt;

use btf::{Kind, Linkage, TypeId};
use spec::Errno;

use crate::error::{Blame, RELOC};

/// Fault of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapFault {
    /// BTF is missing.
    NoTypes,
    /// BTF does not describe the section `.maps`.
    NotDescribed,
    /// A map has no name.
    NoName {
        /// Index of the map, from 0.
        index: usize,
    },
    /// The map reaches beyond its section.
    BeyondSection,
    /// The DATASEC lists a type that is no variable.
    NotVariable(Kind),
    /// The variable is static or extern.
    NotGlobal(Linkage),
    /// The declaration is no structure.
    NotStructure(Kind),
    /// The variable has an initial value.
    Initialised,
    /// The structure is larger than the variable.
    LargerThanVariable,
    /// The attribute is unknown.
    UnknownAttribute(String),
    /// The type of an attribute has a wrong kind.
    WrongShape {
        /// Attribute.
        attribute: String,
        /// Expected kind.
        expected: Kind,
        /// Actual kind.
        found: Kind,
    },
    /// The enumeration of a number does not have one value.
    NotOneNumber(String),
    /// A type has no size.
    NoSize {
        /// Size that the type states.
        of: SizeAttribute,
        /// Type.
        ty: TypeId,
    },
    /// Two attributes state different sizes.
    TwoSizes {
        /// Size that they state.
        of: SizeAttribute,
        /// First size in bytes.
        first: u32,
        /// Second size in bytes.
        second: u32,
    },
    /// The map type is missing.
    NoKind,
    /// The size of a section of legacy definitions is no multiple of their number.
    LegacyCount {
        /// Size of the section in bytes.
        size: u64,
        /// Number of symbols.
        maps: usize,
    },
    /// The size of a legacy definition.
    LegacySize {
        /// Its size in bytes.
        size: u64,
        /// Least size in bytes.
        least: u32,
        /// Largest size in bytes.
        most: Option<u32>,
    },
    /// Bytes after a legacy definition are not zero.
    LegacyRest {
        /// Bytes of the members that are known.
        known: usize,
    },
    /// No map has the id of its inner maps.
    NoInnerMap {
        /// The id; 0 if none is stated.
        id: u32,
    },
    /// The value of `pinning` is unknown.
    UnknownPinning(u32),
    /// `values` is not the last attribute.
    ValuesNotLast,
    /// `values` in a map that contains neither maps nor programs.
    ValuesOfOther(u32),
    /// `values` is no array without elements.
    ValuesNotOpen,
    /// An inner map is a map of maps or of programs.
    NestedTwice,
    /// An inner map is pinned.
    InnerPinned,
    /// Fault of the declaration of inner maps.
    Inner(Box<MapFault>),
    /// A second arena is declared.
    SecondArena {
        /// Name of the first.
        first: String,
    },
    /// The arena is too small for its global variables.
    ArenaTooSmall {
        /// Size of the arena in bytes.
        size: u64,
        /// Size of the variables in bytes.
        variables: u64,
    },
    /// Arena variables without an arena.
    NoArena,
    /// An initial element is not in a map.
    ValueNowhere {
        /// Offset in bytes from the start of the section.
        offset: u64,
    },
    /// The map has no initial elements, or not at this offset.
    ValueMisplaced,
    /// An initial element is not in the section of maps.
    NotDeclared(String),
    /// An initial element is no map.
    NotMap(String),
    /// An initial element is no program.
    NotProgram(String),
    /// An initial element is inside a program, not at its start.
    NotEntry(String),
    /// The keys of a hash of maps with initial elements do not have four bytes.
    KeysNotNumbers,
    /// No map has this name or index.
    NoSuchMap,
    /// The map has no initial contents.
    NoContents,
    /// The contents have a wrong size.
    ContentsSize {
        /// Expected size in bytes.
        expected: u64,
        /// Given size in bytes.
        given: u64,
    },
    /// No global variable has this name.
    NoSuchVariable(String),
    /// The variable is no number, or its size differs from that of its type.
    NotNumber,
    /// The number does not fit into the variable.
    OutOfRange {
        /// Number.
        value: i128,
        /// Size of the variable in bytes.
        size: u32,
    },
    /// The size of the contents is fixed.
    FixedSize,
    /// The map is no map of maps.
    HoldsNoMaps,
}

/// Element part whose size is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeAttribute {
    /// Key.
    Key,
    /// Value.
    Value,
}

impl fmt::Display for SizeAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SizeAttribute::Key => "key",
            SizeAttribute::Value => "value",
        })
    }
}

impl MapFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            MapFault::NoTypes
            | MapFault::NotDescribed
            | MapFault::NoName { .. }
            | MapFault::BeyondSection
            | MapFault::NotVariable(_)
            | MapFault::LargerThanVariable => Blame::File,
            _ => Blame::User,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            MapFault::UnknownAttribute(_)
            | MapFault::NotGlobal(_)
            | MapFault::ValuesOfOther(_)
            | MapFault::NestedTwice
            | MapFault::FixedSize => Errno::EOPNOTSUPP,
            MapFault::NoTypes
            | MapFault::NotDescribed
            | MapFault::NoArena
            | MapFault::NoSuchMap
            | MapFault::NoSuchVariable(_) => Errno::ENOENT,
            MapFault::ArenaTooSmall { .. } => Errno::E2BIG,
            MapFault::NotMap(_) | MapFault::NotProgram(_) => Errno::ESRCH,
            MapFault::NotDeclared(_) | MapFault::NotEntry(_) => RELOC,
            MapFault::Inner(fault) => fault.errno(),
            _ => Errno::EINVAL,
        }
    }
}

impl fmt::Display for MapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapFault::NoTypes => {
                write!(
                    f,
                    "maps require BTF, and the object has none: compile with -g"
                )
            }
            MapFault::NotDescribed => write!(f, "BTF does not describe the section `.maps`"),
            MapFault::NoName { index } => write!(f, "map {index} has no name"),
            MapFault::BeyondSection => write!(f, "BTF places the map beyond its section"),
            MapFault::NotVariable(kind) => {
                write!(f, "DATASEC lists a {} instead of a variable", kind.name())
            }
            MapFault::NotGlobal(linkage) => match *linkage {
                Linkage::STATIC => write!(f, "map is static: maps must be global"),
                Linkage::EXTERN => {
                    write!(f, "map is defined in another file: link the files first")
                }
                other => write!(f, "map has unknown linkage {}", other.0),
            },
            MapFault::NotStructure(kind) => {
                write!(
                    f,
                    "map declaration is a {} instead of a structure",
                    kind.name()
                )
            }
            MapFault::LargerThanVariable => {
                write!(f, "map declaration is larger than its variable")
            }
            MapFault::UnknownAttribute(name) => write!(f, "unknown attribute `{name}`"),
            MapFault::WrongShape {
                attribute,
                expected,
                found,
            } => write!(
                f,
                "attribute `{attribute}` has a {} instead of a {}",
                found.name(),
                expected.name()
            ),
            MapFault::NotOneNumber(name) => {
                write!(
                    f,
                    "attribute `{name}` has not one number: write it with __ulong"
                )
            }
            MapFault::NoSize { of, ty } => write!(f, "type {ty} of the {of} has no size"),
            MapFault::TwoSizes { of, first, second } => {
                write!(
                    f,
                    "{of} size is stated as {first} bytes and as {second} bytes"
                )
            }
            MapFault::NoKind => write!(f, "declaration lacks `type`"),
            MapFault::LegacyCount { size, maps } => {
                write!(
                    f,
                    "{size} bytes are not divided among {maps} map definitions"
                )
            }
            MapFault::LegacySize { size, least, most } => {
                write!(f, "map definition has {size} bytes instead of {least}")?;
                match most {
                    Some(most) => write!(f, " to {most}"),
                    None => write!(f, " or more"),
                }
            }
            MapFault::LegacyRest { known } => write!(
                f,
                "map definition has members after its first {known} bytes, which another loader reads"
            ),
            MapFault::NoInnerMap { id: 0 } => {
                write!(f, "map of maps states no id of its inner maps (inner_id)")
            }
            MapFault::NoInnerMap { id } => {
                write!(f, "no map has the id {id} of its inner maps (inner_id)")
            }
            MapFault::UnknownPinning(value) => {
                write!(f, "pinning {value} is neither none (0) nor by name (1)")
            }
            MapFault::ValuesNotLast => write!(f, "`values` is not the last attribute"),
            MapFault::ValuesOfOther(kind) => {
                write!(
                    f,
                    "map of kind {kind} has `values`, and contains neither maps nor programs"
                )
            }
            MapFault::Initialised => write!(
                f,
                "variable of the declaration has an initial value, which this loader refuses"
            ),
            MapFault::ValuesNotOpen => write!(f, "`values` is not an array without size"),
            MapFault::NestedTwice => write!(f, "inner map is a map of maps or programs"),
            MapFault::InnerPinned => write!(f, "inner map is pinned"),
            MapFault::Inner(fault) => write!(f, "inner maps: {fault}"),
            MapFault::SecondArena { first } => {
                write!(
                    f,
                    "second arena: an object has at most one, and `{first}` is the first"
                )
            }
            MapFault::ArenaTooSmall { size, variables } => write!(
                f,
                "arena of {size} bytes is too small for its variables of {variables} bytes"
            ),
            MapFault::NoArena => write!(
                f,
                "variables are in an arena, and SEC(\".maps\") declares no arena"
            ),
            MapFault::ValueNowhere { offset } => {
                write!(f, "initial element at offset {offset} is not in a map")
            }
            MapFault::ValueMisplaced => {
                write!(f, "initial element in a map without initial elements")
            }
            MapFault::NotMap(name) | MapFault::NotDeclared(name) => {
                write!(f, "initial element `{name}` is no map")
            }
            MapFault::NotProgram(name) => {
                write!(f, "initial element `{name}` is no program")
            }
            MapFault::NotEntry(name) => {
                write!(f, "initial element `{name}` is not the start of a program")
            }
            MapFault::KeysNotNumbers => write!(
                f,
                "hash of maps with initial elements requires keys of four bytes"
            ),
            MapFault::NoSuchMap => write!(f, "no map has this name or index"),
            MapFault::NoContents => write!(f, "map has no initial contents"),
            MapFault::ContentsSize { expected, given } => {
                write!(
                    f,
                    "initial contents have {given} bytes instead of {expected}"
                )
            }
            MapFault::NoSuchVariable(name) => write!(f, "no variable is named `{name}`"),
            MapFault::NotNumber => write!(f, "variable is no number"),
            MapFault::OutOfRange { value, size } => {
                write!(f, "{value} does not fit into {size} bytes")
            }
            MapFault::FixedSize => write!(f, "size of the contents is fixed"),
            MapFault::HoldsNoMaps => write!(f, "map is no map of maps"),
        }
    }
}

impl std::error::Error for MapFault {}
