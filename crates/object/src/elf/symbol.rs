//! Symbols of the file.

use elf_file::Endian;
use elf_file::elf::{
    SHN_LORESERVE, STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION,
    STV_HIDDEN, STV_INTERNAL,
};
use elf_file::read::elf::Sym;

use super::{RawSymbol, SectionId, SymbolId};

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Symbol index.
    pub id: SymbolId,
    /// Section or special index.
    pub place: SymbolPlace,
    /// Offset in bytes from the start of its section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// Binding.
    pub binding: Binding,
    /// Symbol type.
    pub kind: SymbolKind,
    /// True for hidden and internal visibility.
    pub hidden: bool,
    /// Binding and type (`st_info`).
    pub info: u8,
    /// Visibility (`st_other`).
    pub other: u8,
    /// Offset of the name; 0 is no name.
    pub name_offset: u32,
}

/// Section of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPlace {
    /// Undefined.
    Undefined,
    /// A section; it may be missing.
    Section(SectionId),
    /// A special index (absolute, common, ...).
    Special(u16),
}

/// Binding of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Local to its file.
    Local,
    /// Global.
    Global,
    /// Weak: another definition may override it.
    Weak,
    /// Another number.
    Other(u8),
}

/// Symbol type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Unspecified.
    None,
    /// Variable (STT_OBJECT).
    Variable,
    /// Function.
    Function,
    /// Section.
    Section,
    /// Another number.
    Other(u8),
}

impl Symbol {
    pub(super) fn read<E: Endian>(raw: &RawSymbol<E>, id: SymbolId, order: E) -> Symbol {
        let place = match raw.st_shndx(order).0 {
            0 => SymbolPlace::Undefined,
            special if special >= SHN_LORESERVE => SymbolPlace::Special(special),
            section => SymbolPlace::Section(SectionId(section.into())),
        };
        Symbol {
            id,
            place,
            value: raw.st_value(order),
            size: raw.st_size(order),
            binding: match raw.st_bind() {
                STB_LOCAL => Binding::Local,
                STB_GLOBAL => Binding::Global,
                STB_WEAK => Binding::Weak,
                other => Binding::Other(other.0),
            },
            kind: match raw.st_type() {
                STT_NOTYPE => SymbolKind::None,
                STT_OBJECT => SymbolKind::Variable,
                STT_FUNC => SymbolKind::Function,
                STT_SECTION => SymbolKind::Section,
                other => SymbolKind::Other(other.0),
            },
            hidden: matches!(raw.st_visibility(), STV_HIDDEN | STV_INTERNAL),
            info: raw.st_info.0,
            other: raw.st_other.0,
            name_offset: raw.st_name(order),
        }
    }

    /// True for an extern symbol, defined by another file or the kernel.
    pub fn is_extern(&self) -> bool {
        self.place == SymbolPlace::Undefined
            && matches!(self.binding, Binding::Global | Binding::Weak)
            && self.kind == SymbolKind::None
    }

    /// Section index as in the file, special indices included.
    pub fn section_number(&self) -> u32 {
        match self.place {
            SymbolPlace::Undefined => 0,
            SymbolPlace::Section(id) => id.0,
            SymbolPlace::Special(number) => number.into(),
        }
    }

    /// Section of the symbol, if it is in one.
    pub fn section(&self) -> Option<SectionId> {
        match self.place {
            SymbolPlace::Section(id) => Some(id),
            _ => None,
        }
    }
}
