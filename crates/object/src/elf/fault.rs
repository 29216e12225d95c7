//! Faults of the ELF file.

use std::fmt;

use spec::Errno;

use crate::error::{Blame, ENDIAN, FORMAT};

/// Fault of the ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfFault {
    /// The file is not ELF.
    NotElf,
    /// The address size is not 64 bits.
    Not64Bit,
    /// The byte order is unknown.
    UnknownByteOrder,
    /// The byte order is that of other machines.
    ForeignByteOrder,
    /// The file is not relocatable.
    NotRelocatable {
        /// Type of the header.
        kind: u16,
    },
    /// The file is for another processor.
    WrongMachine {
        /// Machine of the header.
        machine: u16,
    },
    /// The header or a table is damaged; message of the ELF parser.
    Damaged(String),
    /// The symbol table is missing: the file was stripped.
    NoSymbols,
    /// There are several symbol tables.
    SeveralSymbolTables,
    /// The symbols have no names, or entries of an unknown size.
    BadSymbolTable,
    /// A section reaches beyond the file.
    SectionCut,
    /// The size of a table is not a multiple of its entries.
    EntryCut {
        /// Size of the section in bytes.
        size: u64,
        /// Size of an entry in bytes.
        entry: u64,
    },
    /// The name of a section or symbol is out of range.
    NoName,
    /// A relocation section has entries of an unknown size, or applies to a missing
    /// section.
    BadRelocations,
    /// A relocation is not at an instruction.
    RelocationOffset {
        /// Offset in bytes from the start of the section.
        offset: u64,
    },
    /// A relocation refers to a missing symbol.
    NoSuchSymbol {
        /// Symbol index.
        symbol: u32,
    },
    /// A symbol is in a missing section.
    NoSuchSection {
        /// Section index.
        section: u32,
    },
}

impl ElfFault {
    /// True if the file is of another kind, not a damaged object.
    pub(crate) fn is_about_kind(&self) -> bool {
        matches!(
            self,
            ElfFault::NotElf
                | ElfFault::Not64Bit
                | ElfFault::NotRelocatable { .. }
                | ElfFault::WrongMachine { .. }
        )
    }

    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        Blame::File
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            ElfFault::NoSymbols => Errno::ENOENT,
            ElfFault::ForeignByteOrder => ENDIAN,
            _ => FORMAT,
        }
    }
}

impl fmt::Display for ElfFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfFault::NotElf => write!(f, "this file has no ELF magic number"),
            ElfFault::Not64Bit => write!(f, "this is no 64-bit ELF file"),
            ElfFault::UnknownByteOrder => write!(f, "ELF file has an unknown byte order"),
            ElfFault::ForeignByteOrder => write!(
                f,
                "this object is for big-endian machines: compile it with -target bpfel"
            ),
            ElfFault::NotRelocatable { kind: 2 | 3 } => {
                write!(f, "this is an executable or shared library, no object file")
            }
            ElfFault::NotRelocatable { kind } => {
                write!(f, "ELF file has type {kind}: this is no object file")
            }
            ElfFault::WrongMachine { machine } => write!(
                f,
                "this object is for {}, not for BPF: compile it with -target bpf",
                machine_name(*machine)
            ),
            ElfFault::Damaged(what) => write!(f, "the ELF file is damaged: {what}"),
            ElfFault::NoSymbols => write!(
                f,
                "symbol table is missing: strip the file with llvm-strip -g, which keeps it"
            ),
            ElfFault::SeveralSymbolTables => write!(f, "file has several symbol tables"),
            ElfFault::BadSymbolTable => write!(f, "symbol table is damaged"),
            ElfFault::SectionCut => write!(f, "section reaches beyond the end of the file"),
            ElfFault::EntryCut { size, entry } => {
                write!(
                    f,
                    "section size of {size} bytes is not a multiple of its entries, {entry} bytes"
                )
            }
            ElfFault::NoName => write!(f, "name is out of range of the string table"),
            ElfFault::BadRelocations => write!(f, "relocation section is damaged"),
            ElfFault::RelocationOffset { offset } => {
                write!(
                    f,
                    "relocation at offset {offset:#x} is not at an instruction"
                )
            }
            ElfFault::NoSuchSymbol { symbol } => {
                write!(f, "relocation refers to missing symbol {symbol}")
            }
            ElfFault::NoSuchSection { section } => {
                write!(f, "symbol is in missing section {section}")
            }
        }
    }
}

impl std::error::Error for ElfFault {}

fn machine_name(machine: u16) -> String {
    match machine {
        3 => "x86".into(),
        8 => "MIPS".into(),
        21 => "PowerPC".into(),
        22 => "S/390".into(),
        40 => "Arm".into(),
        62 => "x86-64".into(),
        183 => "Arm64".into(),
        243 => "RISC-V".into(),
        258 => "LoongArch".into(),
        other => format!("machine {other}"),
    }
}
