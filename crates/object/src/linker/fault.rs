//! Faults of static linking. File, section and symbol are in the [`Place`](crate::Place)
//! of the error.

use std::fmt;

use btf::ext::ExtError;
use btf::{DedupError, ParseError, TypeId};
use spec::Errno;

use super::agreement::Mismatch;
use crate::Blame;

/// Fault of static linking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// The section has no name.
    NamelessSection {
        /// Section index.
        index: u32,
    },
    /// The section type is not part of BPF objects.
    SectionKind(u32),
    /// The alignment is not a power of two.
    Alignment(u64),
    /// The section is compressed.
    Compressed,
    /// The offset of the section in the file violates its alignment.
    Misplaced {
        /// Offset in bytes.
        offset: u64,
        /// Alignment in bytes.
        align: u64,
    },
    /// The size of an executable section is not a multiple of instructions.
    CodeSize(u64),
    /// The entries of a table have a wrong size.
    EntrySize,
    /// `sh_link` is missing or refers to a wrong section.
    WrongLink,
    /// The name of a relocation section is not that of its target.
    RelocationName,
    /// Symbol 0 is not empty.
    FirstSymbol,
    /// The binding of the symbol is unknown.
    Binding(u8),
    /// The visibility is neither default nor hidden.
    Visibility(u8),
    /// An undefined symbol has a type, a value or a size, or is local.
    Extern,
    /// A section symbol does not have value 0.
    SectionSymbolValue,
    /// An undefined symbol cannot be checked without BTF.
    ExternWithoutTypes,
    /// The relocation type is unknown.
    RelocationKind {
        /// Index of the relocation in its section.
        index: usize,
        /// Relocation type.
        kind: u32,
    },
    /// The relocation is beyond the end of its section.
    RelocationOutside {
        /// Offset in bytes.
        offset: u64,
    },
    /// A relocation of data refers to a section symbol.
    SectionInData,
    /// The BTF is malformed.
    Types(ParseError),
    /// The BTF.ext is malformed.
    TypeInfo(ExtError),
    /// BTF.ext without BTF.
    InfoWithoutTypes,
    /// BTF.ext refers to a missing type or string.
    InfoOutOfRange,
    /// BTF.ext refers to a missing section.
    InfoOfNoSection,
    /// A DATASEC has no name.
    NamelessTypes(TypeId),
    /// A DATASEC lists a variable without a symbol in the section.
    VariableWithoutSymbol,
    /// A visible symbol in a file without BTF.
    NoTypes,
    /// A visible symbol without a type in BTF.
    NoType,
    /// A visible symbol with two types in BTF.
    TwoTypes(TypeId, TypeId),
    /// A type refers to one in an omitted section.
    TypeLeftOut(TypeId),
    /// An extern belongs to a missing section.
    ExternSection,
    /// The section differs in form from the one of the same name in an earlier file.
    SectionsDiffer(SectionMismatch),
    /// The section must have equal contents in all files.
    ContentsDiffer,
    /// The symbol is defined in two files, strong in both.
    Duplicate {
        /// Earlier file.
        before: String,
    },
    /// The types of the symbol are incompatible.
    Disagreement {
        /// Earlier file.
        before: String,
        /// Incompatibility.
        what: Mismatch,
    },
    /// The symbol belongs to another section in an earlier file.
    OtherSection,
    /// The type of the variable has no size.
    NoSize,
    /// Deduplication of the BTF failed.
    Dedup(DedupError),
    /// The names in the file exceed the maximum size.
    TooMuchText,
    /// The linked object exceeds the limits of ELF or BTF.
    TooLarge,
    /// No input file.
    NoInput,
}

/// Difference between two sections of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionMismatch {
    /// Section type.
    Kind,
    /// Section flags.
    Flags,
    /// Entry size.
    EntrySize,
}

impl LinkFault {
    /// Party that can fix it.
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

    /// Error number of libbpf 7.2.
    pub fn errno(&self) -> Errno {
        match self {
            LinkFault::NoType | LinkFault::VariableWithoutSymbol | LinkFault::ExternSection => {
                Errno::ENOENT
            }
            LinkFault::ExternWithoutTypes => Errno::EOPNOTSUPP,
            _ => Errno::EINVAL,
        }
    }
}

impl fmt::Display for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkFault::NamelessSection { index } => write!(f, "section {index} has no name"),
            LinkFault::SectionKind(kind) => {
                write!(f, "section type {kind:#x} is not part of BPF objects")
            }
            LinkFault::Alignment(align) => {
                write!(f, "alignment {align} is not a power of two")
            }
            LinkFault::Compressed => write!(
                f,
                "section is compressed: decompress it with llvm-objcopy --decompress-debug-sections"
            ),
            LinkFault::Misplaced { offset, align } => write!(
                f,
                "section starts at byte {offset} of the file, against its alignment of {align} bytes"
            ),
            LinkFault::CodeSize(size) => {
                write!(f, "{size} bytes are not a whole number of instructions")
            }
            LinkFault::EntrySize => write!(f, "entries have a wrong size"),
            LinkFault::WrongLink => {
                write!(f, "linked section is missing or a wrong one")
            }
            LinkFault::RelocationName => {
                write!(f, "name is not that of the relocated section")
            }
            LinkFault::FirstSymbol => write!(f, "symbol 0 is not empty"),
            LinkFault::Binding(binding) => write!(f, "binding {binding} is unknown"),
            LinkFault::Visibility(visibility) => write!(
                f,
                "visibility {visibility} is neither default (0) nor hidden (2)"
            ),
            LinkFault::Extern => {
                write!(f, "undefined symbol has a type, value or size, or is local")
            }
            LinkFault::SectionSymbolValue => {
                write!(f, "section symbol does not have value 0")
            }
            LinkFault::ExternWithoutTypes => write!(
                f,
                "undefined symbol cannot be checked without BTF: compile with -g"
            ),
            LinkFault::RelocationKind { index, kind } => {
                write!(f, "relocation {index} has unknown type {kind}")
            }
            LinkFault::RelocationOutside { offset } => write!(
                f,
                "relocation at offset {offset:#x} is beyond the end of the section"
            ),
            LinkFault::SectionInData => write!(
                f,
                "data refers to a static variable or function, which is not linkable: \
                 let it refer to one that is not static"
            ),
            LinkFault::Types(error) => write!(f, "{error}"),
            LinkFault::TypeInfo(error) => write!(f, "{error}"),
            LinkFault::InfoWithoutTypes => write!(f, ".BTF.ext without .BTF"),
            LinkFault::InfoOutOfRange => {
                write!(f, ".BTF.ext refers to a type or string that .BTF lacks")
            }
            LinkFault::InfoOfNoSection => {
                write!(f, ".BTF.ext refers to this section, which is missing")
            }
            LinkFault::NamelessTypes(id) => {
                write!(f, "DATASEC {id} of .BTF has no name")
            }
            LinkFault::VariableWithoutSymbol => {
                write!(f, "variable of .BTF is no symbol of the section")
            }
            LinkFault::NoTypes => {
                write!(f, "visible symbol in a file without BTF: compile with -g")
            }
            LinkFault::NoType => write!(
                f,
                "visible symbol has no type in .BTF: compile with -g, or make it static"
            ),
            LinkFault::TwoTypes(one, other) => {
                write!(f, "symbol has two types in .BTF, {one} and {other}")
            }
            LinkFault::TypeLeftOut(id) => write!(
                f,
                "a type refers to type {id}, which belongs to an omitted section"
            ),
            LinkFault::ExternSection => {
                write!(f, "undefined symbol belongs to a missing section")
            }
            LinkFault::SectionsDiffer(what) => {
                write!(f, "section has {what} than in an earlier file")
            }
            LinkFault::ContentsDiffer => {
                write!(
                    f,
                    "contents differ from those of an earlier file: make them equal"
                )
            }
            LinkFault::Duplicate { before } => write!(
                f,
                "symbol is defined in {before} too: make one of them weak or static"
            ),
            LinkFault::Disagreement { before, what } => {
                write!(f, "type is incompatible with {before}: {what}")
            }
            LinkFault::OtherSection => {
                write!(f, "symbol belongs to another section in an earlier file")
            }
            LinkFault::NoSize => write!(f, "type has no size"),
            LinkFault::Dedup(error) => write!(f, "deduplication of BTF failed: {error}"),
            LinkFault::TooMuchText => {
                write!(f, "names exceed the maximum size")
            }
            LinkFault::TooLarge => write!(f, "linked object is too large"),
            LinkFault::NoInput => write!(f, "no object to link"),
        }
    }
}

impl std::error::Error for LinkFault {}

impl fmt::Display for SectionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SectionMismatch::Kind => "another kind",
            SectionMismatch::Flags => "other flags",
            SectionMismatch::EntrySize => "entries of another size",
        })
    }
}

impl std::error::Error for SectionMismatch {}
