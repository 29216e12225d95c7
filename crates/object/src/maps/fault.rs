//! What can be wrong with a map before it exists.

use std::fmt;

use btf::{Kind, Linkage, TypeId};

use crate::error::Blame;

/// What is wrong with a map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapFault {
    /// There are maps but no types that describe them.
    NoTypes,
    /// The section `.maps` is not described by types.
    NotDescribed,
    /// A map has no name.
    NoName {
        /// Which one, from 0.
        index: usize,
    },
    /// The types place it beyond its section.
    BeyondSection,
    /// What is described is no variable.
    NotVariable(Kind),
    /// It is static, or of another file.
    NotGlobal(Linkage),
    /// It is no structure.
    NotStructure(Kind),
    /// The structure is larger than the variable.
    LargerThanVariable,
    /// An attribute that nobody knows.
    UnknownAttribute(String),
    /// An attribute has a type that says nothing.
    WrongShape {
        /// The attribute.
        attribute: String,
        /// What it should be.
        expected: Kind,
        /// What it is.
        found: Kind,
    },
    /// The enumeration that stands for a number has more or fewer values than one.
    NotOneNumber(String),
    /// A type has no size.
    NoSize {
        /// What it is the type of.
        of: Amount,
        /// The type.
        ty: TypeId,
    },
    /// Two attributes state different sizes.
    TwoSizes {
        /// Of what.
        of: Amount,
        /// The first, in bytes.
        first: u32,
        /// The second, in bytes.
        second: u32,
    },
    /// The kind is missing.
    NoKind,
    /// `pinning` is neither none nor by name.
    UnknownPinning(u32),
    /// `values` is not the last attribute.
    ValuesNotLast,
    /// `values` in a map of this kind, which holds neither maps nor programs.
    ValuesOfOther(u32),
    /// `values` is no array without elements.
    ValuesNotOpen,
    /// An inner map holds maps or programs.
    NestedTwice,
    /// An inner map is pinned.
    InnerPinned,
    /// The declaration of inner maps is wrong.
    Inner(Box<MapFault>),
    /// There is a second arena.
    SecondArena {
        /// The first.
        first: String,
    },
    /// The arena has no room for the variables in it.
    ArenaTooSmall {
        /// Bytes of the arena.
        size: u64,
        /// Bytes of the variables.
        variables: u64,
    },
    /// There are variables in an arena, but no arena.
    NoArena,
    /// An initial value stands where no map is.
    ValueNowhere {
        /// Bytes from the start of the section.
        offset: u64,
    },
    /// An initial value of a map that takes none, or not there.
    ValueMisplaced,
    /// An initial value that stands in another section than maps do.
    NotDeclared(String),
    /// An initial value that is no map.
    NotMap(String),
    /// An initial value that is no program.
    NotProgram(String),
    /// An initial value inside a program, not at its start.
    NotEntry(String),
    /// A hash of maps with initial values has keys that are no numbers.
    KeysNotNumbers,
    /// There is no map of that name or number.
    NoSuchMap,
    /// The map has no contents that could be set before it exists.
    NoContents,
    /// The contents have another size.
    ContentsSize {
        /// Bytes that are expected.
        expected: u64,
        /// Bytes that were given.
        given: u64,
    },
    /// There is no variable of that name.
    NoSuchVariable(String),
    /// The variable is no number, or its type has another size than it.
    NotNumber,
    /// The number does not fit into the variable.
    OutOfRange {
        /// The number.
        value: i128,
        /// Bytes of the variable.
        size: u32,
    },
    /// The size of contents is not up to the user.
    FixedSize,
    /// Its values are no maps.
    HoldsNoMaps,
}

/// What a size is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Of a key.
    Key,
    /// Of a value.
    Value,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Amount::Key => "key",
            Amount::Value => "value",
        })
    }
}

impl MapFault {
    /// Whose fault it is.
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

    /// The number of the error that Linux's loader gives (`errno.h`).
    pub fn errno(&self) -> i32 {
        const ENOENT: i32 = 2;
        const ESRCH: i32 = 3;
        const E2BIG: i32 = 7;
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        /// libbpf's own, for relocations.
        const RELOCATION: i32 = 4005;
        match self {
            MapFault::UnknownAttribute(_)
            | MapFault::NotGlobal(_)
            | MapFault::ValuesOfOther(_)
            | MapFault::NestedTwice
            | MapFault::FixedSize => EOPNOTSUPP,
            MapFault::NoTypes
            | MapFault::NotDescribed
            | MapFault::NoArena
            | MapFault::NoSuchMap
            | MapFault::NoSuchVariable(_) => ENOENT,
            MapFault::ArenaTooSmall { .. } => E2BIG,
            MapFault::NotMap(_) | MapFault::NotProgram(_) => ESRCH,
            MapFault::NotDeclared(_) | MapFault::NotEntry(_) => RELOCATION,
            MapFault::Inner(fault) => fault.errno(),
            _ => EINVAL,
        }
    }
}

impl fmt::Display for MapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapFault::NoTypes => {
                write!(
                    f,
                    "maps are described by types, but there are none: compile with -g"
                )
            }
            MapFault::NotDescribed => write!(f, "the types do not describe the section `.maps`"),
            MapFault::NoName { index } => write!(f, "map number {index} has no name"),
            MapFault::BeyondSection => write!(f, "the types place it beyond its section"),
            MapFault::NotVariable(kind) => {
                write!(f, "it should be a variable and is a {}", kind.name())
            }
            MapFault::NotGlobal(linkage) => match *linkage {
                Linkage::STATIC => write!(f, "a static map: maps have to be global"),
                Linkage::EXTERN => write!(f, "a map of another file: link the two first"),
                other => write!(f, "a map of unknown linkage {}", other.0),
            },
            MapFault::NotStructure(kind) => {
                write!(
                    f,
                    "a map is declared by a structure, not by a {}",
                    kind.name()
                )
            }
            MapFault::LargerThanVariable => {
                write!(f, "the structure is larger than the variable")
            }
            MapFault::UnknownAttribute(name) => write!(f, "there is no attribute `{name}`"),
            MapFault::WrongShape {
                attribute,
                expected,
                found,
            } => write!(
                f,
                "attribute `{attribute}` has a {} where a {} belongs",
                found.name(),
                expected.name()
            ),
            MapFault::NotOneNumber(name) => {
                write!(
                    f,
                    "attribute `{name}` has not one number: write it with __ulong"
                )
            }
            MapFault::NoSize { of, ty } => write!(f, "the type of its {of} ({ty}) has no size"),
            MapFault::TwoSizes { of, first, second } => {
                write!(f, "its {of} has {first} bytes, and {second} bytes too")
            }
            MapFault::NoKind => write!(f, "the declaration has no `type`"),
            MapFault::UnknownPinning(value) => {
                write!(f, "pinning {value} is neither none (0) nor by name (1)")
            }
            MapFault::ValuesNotLast => write!(f, "`values` has to be the last attribute"),
            MapFault::ValuesOfOther(kind) => {
                write!(f, "a map of kind {kind} holds neither maps nor programs")
            }
            MapFault::ValuesNotOpen => write!(f, "`values` has to be an array of no size"),
            MapFault::NestedTwice => write!(f, "a map in a map can't hold maps or programs"),
            MapFault::InnerPinned => write!(f, "a map in a map can't be pinned"),
            MapFault::Inner(fault) => write!(f, "the maps in it: {fault}"),
            MapFault::SecondArena { first } => {
                write!(f, "a second arena: there can be one, and `{first}` is it")
            }
            MapFault::ArenaTooSmall { size, variables } => write!(
                f,
                "the arena has {size} bytes, too few for its variables of {variables} bytes"
            ),
            MapFault::NoArena => write!(
                f,
                "there are variables in an arena, but SEC(\".maps\") declares no arena"
            ),
            MapFault::ValueNowhere { offset } => {
                write!(f, "an initial value at offset {offset}, where no map is")
            }
            MapFault::ValueMisplaced => write!(f, "an initial value where none belongs"),
            MapFault::NotMap(name) | MapFault::NotDeclared(name) => {
                write!(f, "the initial value `{name}` is no map")
            }
            MapFault::NotProgram(name) => {
                write!(f, "the initial value `{name}` is no program")
            }
            MapFault::NotEntry(name) => {
                write!(
                    f,
                    "the initial value `{name}` is not the start of a program"
                )
            }
            MapFault::KeysNotNumbers => write!(
                f,
                "a hash of maps with initial values needs keys of four bytes"
            ),
            MapFault::NoSuchMap => write!(f, "there is no such map"),
            MapFault::NoContents => write!(f, "it has no contents before it exists"),
            MapFault::ContentsSize { expected, given } => {
                write!(f, "{given} bytes given for {expected} bytes of contents")
            }
            MapFault::NoSuchVariable(name) => write!(f, "there is no variable `{name}`"),
            MapFault::NotNumber => write!(f, "it is no number"),
            MapFault::OutOfRange { value, size } => {
                write!(f, "{value} does not fit into its {size} bytes")
            }
            MapFault::FixedSize => write!(f, "the size of its contents can't be changed"),
            MapFault::HoldsNoMaps => write!(f, "its values are no maps"),
        }
    }
}
