//! What can be wrong with files that are to be one. Which file, section and
//! symbol it is about says [`Place`](crate::Place).

use std::fmt;

use btf::ext::ExtError;
use btf::{DedupError, ParseError, TypeId};

use super::agreement::Mismatch;
use crate::Blame;

/// Why files can't be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// The section has no name.
    NamelessSection {
        /// Its number.
        index: u32,
    },
    /// The section is of a kind that has no place in a BPF object.
    SectionKind(u32),
    /// The section is aligned to something else than a power of two.
    Alignment(u64),
    /// The section is compressed.
    Compressed,
    /// The section starts in the file where its alignment does not let it.
    Misplaced {
        /// Where it starts, in bytes.
        offset: u64,
        /// Its alignment, in bytes.
        align: u64,
    },
    /// The section holds instructions, but these bytes are no whole number of them.
    CodeSize(u64),
    /// The entries of the table do not have the size that they should have.
    EntrySize,
    /// The section does not say which other section belongs to it.
    WrongLink,
    /// Relocations are not named after the section that they are for.
    RelocationName,
    /// Symbol 0 is not empty.
    FirstSymbol,
    /// The symbol has a binding that nobody knows.
    Binding(u8),
    /// The symbol is neither of default visibility nor hidden.
    Visibility(u8),
    /// The symbol is to be defined elsewhere, but has a kind, a value, a size, or is
    /// local.
    Extern,
    /// The symbol stands for a section, but not for its start.
    SectionSymbolValue,
    /// The symbol is to be defined elsewhere, which takes types to check.
    ExternWithoutTypes,
    /// The relocation is of a kind that nobody knows.
    RelocationKind {
        /// Which of the section's, from 0.
        index: usize,
        /// The kind.
        kind: u32,
    },
    /// The relocation is not for anything inside its section.
    RelocationOutside {
        /// Where it points, in bytes.
        offset: u64,
    },
    /// In data, a relocation refers to a section as a whole.
    SectionInData,
    /// The types can't be read.
    Types(ParseError),
    /// What is said about instructions can't be read.
    TypeInfo(ExtError),
    /// Something is said about instructions, but there are no types.
    InfoWithoutTypes,
    /// What is said about instructions names a type or text that is not there.
    InfoOutOfRange,
    /// Something is said about instructions of a section that is not there.
    InfoOfNoSection,
    /// The types have variables in a section without a name.
    NamelessTypes(TypeId),
    /// The types have a variable that is no symbol of its section.
    VariableWithoutSymbol,
    /// Other files can see the symbol, but the file has no types at all.
    NoTypes,
    /// Other files can see the symbol, but it has no type.
    NoType,
    /// Other files can see the symbol, and it has two types.
    TwoTypes(TypeId, TypeId),
    /// A type refers to one that was left out, with the section that it is in.
    TypeLeftOut(TypeId),
    /// What is to be defined elsewhere belongs to a section that is not there.
    ExternSection,
    /// The section is of another form than that of the same name in a file before.
    SectionsDiffer(SectionMismatch),
    /// The section must say the same in all files and does not.
    ContentsDiffer,
    /// The symbol is defined in two files, and weak in neither.
    Duplicate {
        /// The file before.
        before: String,
    },
    /// Two files do not mean the same by the symbol.
    Disagreement {
        /// The file before.
        before: String,
        /// What they do not agree on.
        what: Mismatch,
    },
    /// The symbol belongs to another section in a file before.
    OtherSection,
    /// The type of the variable has no size.
    NoSize,
    /// The types of all files can't be joined.
    Dedup(DedupError),
    /// The names in the file are more text than a file can need.
    TooMuchText,
    /// The result would be larger than ELF or BTF can say.
    TooLarge,
    /// There is nothing to link.
    NoInput,
}

/// What differs between two sections of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionMismatch {
    /// The kind of section.
    Kind,
    /// The flags.
    Flags,
    /// The size of entries.
    EntrySize,
}

impl LinkFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            LinkFault::ExternWithoutTypes
            | LinkFault::NoTypes
            | LinkFault::NoType
            | LinkFault::SectionInData
            | LinkFault::SectionsDiffer(_)
            | LinkFault::ContentsDiffer
            | LinkFault::Duplicate { .. }
            | LinkFault::Disagreement { .. }
            | LinkFault::OtherSection
            | LinkFault::TooLarge
            | LinkFault::NoInput => Blame::User,
            _ => Blame::File,
        }
    }

    /// The system's number of the error with which libbpf 7.2 ends.
    pub fn errno(&self) -> i32 {
        const ENOENT: i32 = 2;
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        match self {
            LinkFault::NoType | LinkFault::VariableWithoutSymbol | LinkFault::ExternSection => {
                ENOENT
            }
            LinkFault::ExternWithoutTypes => EOPNOTSUPP,
            _ => EINVAL,
        }
    }
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkFault::NamelessSection { index } => write!(f, "section {index} has no name"),
            LinkFault::SectionKind(kind) => write!(
                f,
                "a section of kind {kind:#x}, which has no place in a BPF object"
            ),
            LinkFault::Alignment(align) => {
                write!(f, "its alignment is {align}, which is no power of two")
            }
            LinkFault::Compressed => write!(
                f,
                "it is compressed: llvm-objcopy --decompress-debug-sections undoes that"
            ),
            LinkFault::Misplaced { offset, align } => write!(
                f,
                "it starts at byte {offset} of the file, but is aligned to {align} bytes"
            ),
            LinkFault::CodeSize(size) => {
                write!(f, "{size} bytes are no whole number of instructions")
            }
            LinkFault::EntrySize => write!(f, "its entries have a wrong size"),
            LinkFault::WrongLink => {
                write!(
                    f,
                    "the section that belongs to it is missing, or another one"
                )
            }
            LinkFault::RelocationName => {
                write!(f, "it is not named after the section that it relocates")
            }
            LinkFault::FirstSymbol => write!(f, "the first symbol is not empty"),
            LinkFault::Binding(binding) => write!(f, "its binding {binding} is unknown"),
            LinkFault::Visibility(visibility) => write!(
                f,
                "its visibility is {visibility}; a linker of BPF objects knows default (0) and hidden (2)"
            ),
            LinkFault::Extern => write!(
                f,
                "it is to be defined elsewhere, but has a kind, value or size, or is local"
            ),
            LinkFault::SectionSymbolValue => {
                write!(f, "it stands for a section, but not for its start")
            }
            LinkFault::ExternWithoutTypes => write!(
                f,
                "it is to be defined elsewhere, which can't be checked without types: compile with -g"
            ),
            LinkFault::RelocationKind { index, kind } => {
                write!(f, "relocation {index} is of the unknown kind {kind}")
            }
            LinkFault::RelocationOutside { offset } => write!(
                f,
                "a relocation at offset {offset:#x}, beyond the end of the section"
            ),
            LinkFault::SectionInData => write!(
                f,
                "data refers to a static variable or function, which can't be linked: \
                 let it refer to one that is not static"
            ),
            LinkFault::Types(error) => write!(f, "{error}"),
            LinkFault::TypeInfo(error) => write!(f, "{error}"),
            LinkFault::InfoWithoutTypes => write!(f, "there is no .BTF beside it"),
            LinkFault::InfoOutOfRange => {
                write!(f, "it names a type or text that .BTF does not have")
            }
            LinkFault::InfoOfNoSection => {
                write!(f, ".BTF.ext is about this section, which is not there")
            }
            LinkFault::NamelessTypes(id) => {
                write!(
                    f,
                    "type {id} of .BTF is a section of variables without a name"
                )
            }
            LinkFault::VariableWithoutSymbol => {
                write!(f, "it is a variable of .BTF, but no symbol of the section")
            }
            LinkFault::NoTypes => write!(
                f,
                "other files can see it, but there are no types in the file: compile with -g"
            ),
            LinkFault::NoType => write!(
                f,
                "other files can see it, but it has no type in .BTF: compile with -g, \
                 or make it static"
            ),
            LinkFault::TwoTypes(one, other) => {
                write!(f, "it has two types in .BTF, {one} and {other}")
            }
            LinkFault::TypeLeftOut(id) => write!(
                f,
                "something refers to type {id}, which belongs to a section that is left out"
            ),
            LinkFault::ExternSection => {
                write!(
                    f,
                    "it is to be defined elsewhere, in a section that is not there"
                )
            }
            LinkFault::SectionsDiffer(what) => {
                write!(f, "it has {what} than in a file before")
            }
            LinkFault::ContentsDiffer => {
                write!(
                    f,
                    "it says something else than in a file before; all must agree"
                )
            }
            LinkFault::Duplicate { before } => write!(
                f,
                "it is defined in {before} too; make one of them weak or static"
            ),
            LinkFault::Disagreement { before, what } => {
                write!(f, "{before} means something else by it: {what}")
            }
            LinkFault::OtherSection => write!(f, "it belongs to another section in a file before"),
            LinkFault::NoSize => write!(f, "its type has no size"),
            LinkFault::Dedup(error) => write!(f, "the types can't be joined: {error}"),
            LinkFault::TooMuchText => {
                write!(f, "its names are far more text than it has bytes for")
            }
            LinkFault::TooLarge => write!(f, "the linked object would be too large"),
            LinkFault::NoInput => write!(f, "there is nothing to link"),
        }
    }
}

impl fmt::Display for SectionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SectionMismatch::Kind => "another kind",
            SectionMismatch::Flags => "other flags",
            SectionMismatch::EntrySize => "entries of another size",
        })
    }
}
