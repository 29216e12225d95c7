//! The file as plain tables: sections, symbols, relocations.
//!
//! Everything later reads these tables and never the file. They are made in one
//! pass, borrow the file's bytes, and keep what is wrong with a section until
//! somebody asks for that section: compilers leave debug sections that nobody
//! needs, and a damaged one of those is no reason to refuse the programs.
//!
//! Cost: one allocation for each table, none for each entry.

use std::fmt;

use btf::Name;
use elf_file::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, EM_BPF, EM_NONE, ET_REL, FileHeader64, SHF_COMPRESSED,
    SHF_EXECINSTR, SHN_LORESERVE, SHT_DYNAMIC, SHT_DYNSYM, SHT_FINI_ARRAY, SHT_GNU_LIBLIST,
    SHT_GNU_VERNEED, SHT_GNU_VERSYM, SHT_GROUP, SHT_HASH, SHT_INIT_ARRAY, SHT_NOBITS,
    SHT_PREINIT_ARRAY, SHT_PROGBITS, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX,
    STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION, STV_HIDDEN,
    STV_INTERNAL,
};
use elf_file::read::elf::{FileHeader, Rel, SectionHeader, Sym};
use elf_file::{LittleEndian, pod};

use crate::error::{Blame, ENDIAN, Error, FORMAT};

/// The number of a section in its file; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u32);

/// The number of a symbol in its file; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// A file's tables.
#[derive(Clone, Debug)]
pub struct Elf<'a> {
    /// The machine that the header states: BPF's number, or 0.
    machine: u16,
    sections: Vec<Section<'a>>,
    symbols: Vec<Symbol>,
    /// The section of the symbols.
    symbol_table: SectionId,
    /// The text that names of symbols are in.
    symbol_names: Option<&'a [u8]>,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Its number.
    pub id: SectionId,
    /// Its name.
    pub name: Name<'a>,
    /// What it holds.
    pub kind: SectionKind,
    /// Its flags, as the file has them.
    pub flags: u64,
    /// Do its bytes hold instructions?
    pub executable: bool,
    /// Are its bytes compressed?
    pub compressed: bool,
    /// Bytes; a section without contents has a size too.
    pub size: u64,
    /// The section that it belongs to: the names of symbols, the symbols of
    /// relocations.
    pub link: SectionId,
    /// The section that relocations are for.
    pub target: SectionId,
    /// Bytes of each entry, for tables.
    pub entry_size: u64,
    /// The alignment that it asks for, in bytes.
    pub align: u64,
    /// Where it starts in the file, in bytes.
    pub offset: u64,
    /// `None` if it reaches beyond the file.
    data: Option<&'a [u8]>,
    /// Bytes of each entry, by the kind of section, whatever it says itself.
    unit: u64,
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// Bytes of the program.
    Bytes,
    /// Zeros, which the file does not hold.
    Zeros,
    /// Relocations without addends.
    Relocations,
    /// Names.
    Names,
    /// Symbols.
    Symbols,
    /// Which symbols have an address that matters (LLVM's).
    AddressSignificance,
    /// Anything else, by the number that the file gives.
    Other(u32),
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// Its number.
    pub id: SymbolId,
    /// Where it is.
    pub place: SymbolPlace,
    /// Bytes from the start of its section.
    pub value: u64,
    /// Bytes.
    pub size: u64,
    /// Who sees it.
    pub binding: Binding,
    /// What it is.
    pub kind: SymbolKind,
    /// Is a global one meant for its own module only?
    pub hidden: bool,
    /// Binding and kind in one byte, as the file has them (`st_info`).
    pub info: u8,
    /// Visibility and what else is there, as the file has it (`st_other`).
    pub other: u8,
    /// Where its name starts; 0 is no name.
    pub name_offset: u32,
}

/// Where a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolPlace {
    /// Nowhere in this file.
    Undefined,
    /// In a section; nobody has looked whether there is one of that number.
    Section(SectionId),
    /// One of the numbers with a meaning of their own (absolute, common, ...).
    Special(u16),
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Its own file.
    Local,
    /// Everybody.
    Global,
    /// Everybody, and another definition may take its place.
    Weak,
    /// Another number.
    Other(u8),
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Nobody said.
    None,
    /// A variable.
    Variable,
    /// A function.
    Function,
    /// The section itself.
    Section,
    /// Another number.
    Other(u8),
}

/// A relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Bytes from the start of the section that it is for.
    pub offset: u64,
    /// The symbol that it refers to.
    pub symbol: SymbolId,
    /// Its type (`R_BPF_64_64` and so on).
    pub kind: u32,
}

/// What is wrong with the file as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfFault {
    /// It is no ELF file.
    NotElf,
    /// It is for machines with another size of address.
    Not64Bit,
    /// The byte order is neither of the two.
    UnknownByteOrder,
    /// It is for machines of the other byte order.
    ForeignByteOrder,
    /// It is no relocatable file.
    NotRelocatable {
        /// The type that the header states.
        kind: u16,
    },
    /// It is for another processor.
    WrongMachine {
        /// The machine that the header states.
        machine: u16,
    },
    /// The header or a table that it points to is damaged; the reader's words.
    Damaged(String),
    /// There is no table of symbols: the file was stripped.
    NoSymbols,
    /// There is more than one table of symbols.
    SeveralSymbolTables,
    /// The symbols have no names, or their entries an unknown size.
    BadSymbolTable,
    /// A section starts or ends beyond the file.
    SectionCut,
    /// A section of a kind that holds entries ends within one.
    EntryCut {
        /// Bytes of the section.
        size: u64,
        /// Bytes of an entry.
        entry: u64,
    },
    /// The name of a section or symbol is not where the file says.
    NoName,
    /// A table of relocations has entries of an unknown size, or is for a section
    /// that does not exist.
    BadRelocations,
    /// A relocation is for no instruction.
    RelocationOffset {
        /// Where it points, in bytes from the start of the section.
        offset: u64,
    },
    /// A relocation refers to a symbol that does not exist.
    NoSuchSymbol {
        /// Its number.
        symbol: u32,
    },
    /// A symbol is in a section that does not exist.
    NoSuchSection {
        /// Its number.
        section: u32,
    },
}

impl ElfFault {
    /// Is it another kind of file, rather than a damaged object?
    pub(crate) fn is_about_kind(&self) -> bool {
        matches!(
            self,
            ElfFault::NotElf
                | ElfFault::Not64Bit
                | ElfFault::NotRelocatable { .. }
                | ElfFault::WrongMachine { .. }
        )
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        Blame::File
    }

    /// The number of the error with which libbpf ends.
    pub fn errno(&self) -> i32 {
        match self {
            ElfFault::NoSymbols => 2,
            ElfFault::ForeignByteOrder => ENDIAN,
            _ => FORMAT,
        }
    }
}

impl fmt::Display for ElfFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfFault::NotElf => write!(f, "this is no ELF file"),
            ElfFault::Not64Bit => write!(f, "this is no 64-bit ELF file"),
            ElfFault::UnknownByteOrder => write!(f, "an ELF file of an unknown byte order"),
            ElfFault::ForeignByteOrder => write!(
                f,
                "this object is for big-endian machines: compile it with -target bpfel"
            ),
            ElfFault::NotRelocatable { kind: 2 | 3 } => {
                write!(f, "this is a program or shared library, no object file")
            }
            ElfFault::NotRelocatable { kind } => write!(f, "an ELF file of type {kind}, no object"),
            ElfFault::WrongMachine { machine } => write!(
                f,
                "this object is for {}, not for BPF: compile it with -target bpf",
                machine_name(*machine)
            ),
            ElfFault::Damaged(what) => write!(f, "the ELF file is damaged: {what}"),
            ElfFault::NoSymbols => write!(
                f,
                "there is no symbol table: was the file stripped? (llvm-strip -g keeps it)"
            ),
            ElfFault::SeveralSymbolTables => write!(f, "there are several symbol tables"),
            ElfFault::BadSymbolTable => write!(f, "the symbol table is damaged"),
            ElfFault::SectionCut => write!(f, "the section reaches beyond the end of the file"),
            ElfFault::EntryCut { size, entry } => {
                write!(
                    f,
                    "its {size} bytes are no whole number of entries of {entry}"
                )
            }
            ElfFault::NoName => write!(f, "a name is not where the file says"),
            ElfFault::BadRelocations => write!(f, "the table of relocations is damaged"),
            ElfFault::RelocationOffset { offset } => {
                write!(f, "a relocation for no instruction, at offset {offset:#x}")
            }
            ElfFault::NoSuchSymbol { symbol } => {
                write!(
                    f,
                    "a relocation refers to symbol {symbol}, which does not exist"
                )
            }
            ElfFault::NoSuchSection { section } => {
                write!(f, "a symbol is in section {section}, which does not exist")
            }
        }
    }
}

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

type Header = FileHeader64<LittleEndian>;
type RawSection = elf_file::elf::SectionHeader64<LittleEndian>;
type RawSymbol = elf_file::elf::Sym64<LittleEndian>;
type RawRelocation = elf_file::elf::Rel64<LittleEndian>;

/// `SHT_LLVM_ADDRSIG`.
const ADDRESS_SIGNIFICANCE: u32 = 0x6fff_4c03;

impl<'a> Elf<'a> {
    /// Reads a file: a relocatable one for BPF, of this byte order.
    pub fn parse(file: &'a [u8]) -> Result<Elf<'a>, Error> {
        let damaged = |error: elf_file::read::Error| ElfFault::Damaged(error.to_string());
        let header = check_header(file)?;
        let count = header.shnum(LittleEndian, file).map_err(damaged)?;
        // Nobody looks at the size that the header states for an entry.
        let table = usize::try_from(header.e_shoff(LittleEndian)).ok();
        let table = table
            .and_then(|start| file.get(start..))
            .unwrap_or_default();
        let cut = |()| ElfFault::Damaged("the table of sections is cut".into());
        let (raw, _) = pod::slice_from_bytes::<RawSection>(table, count as usize).map_err(cut)?;
        let names = header
            .shstrndx(LittleEndian, file)
            .map_err(damaged)
            .map(|index| raw.get(index as usize))?
            .and_then(|section| {
                let data = section.data(LittleEndian, file).ok()?;
                Some((section.sh_type(LittleEndian), data))
            });
        let nameless = || ElfFault::Damaged("the sections have no names".into());
        let (kind, names) = names.ok_or_else(nameless)?;
        // That there are no symbols is said first: it is what a user can mend.
        let is_symbols = |section: &RawSection| section.sh_type(LittleEndian) == SHT_SYMTAB;
        if !raw.iter().any(is_symbols) {
            return Err(ElfFault::NoSymbols.into());
        }
        if kind != SHT_STRTAB {
            return Err(nameless().into());
        }
        let mut sections = Vec::with_capacity(raw.len());
        for (raw, index) in raw.iter().zip(0..) {
            sections.push(Section::read(raw, SectionId(index), file, names)?);
        }
        let mut elf = Elf {
            machine: header.e_machine(LittleEndian).0,
            sections,
            symbols: Vec::new(),
            symbol_table: SectionId(0),
            symbol_names: None,
        };
        elf.read_symbols()?;
        Ok(elf)
    }

    fn read_symbols(&mut self) -> Result<(), ElfFault> {
        let mut tables = self
            .sections
            .iter()
            .filter(|section| section.kind == SectionKind::Symbols);
        let table = *tables.next().ok_or(ElfFault::NoSymbols)?;
        if tables.next().is_some() {
            return Err(ElfFault::SeveralSymbolTables);
        }
        let data = table.data()?;
        if table.entry_size != size_of::<RawSymbol>() as u64 {
            return Err(ElfFault::BadSymbolTable);
        }
        let names = match self.section(table.link) {
            Some(names) if table.link != SectionId(0) => names,
            _ => return Err(ElfFault::BadSymbolTable),
        };
        self.symbol_names = names.data.filter(|_| names.kind == SectionKind::Names);
        self.symbol_table = table.id;
        let count = data.len() / size_of::<RawSymbol>();
        let raw = pod::slice_from_bytes::<RawSymbol>(data, count);
        let (raw, _) = raw.map_err(|()| ElfFault::BadSymbolTable)?;
        self.symbols = raw
            .iter()
            .zip(0..)
            .map(|(raw, id)| Symbol::read(raw, SymbolId(id)))
            .collect();
        Ok(())
    }

    /// Does the header name BPF as its machine? Old compilers left the machine out.
    pub fn names_machine(&self) -> bool {
        self.machine == EM_BPF.0
    }

    /// The sections, number 0 included, which is none.
    pub fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// The symbols, number 0 included, which is none.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The section that the symbols are in.
    pub fn symbol_table(&self) -> SectionId {
        self.symbol_table
    }

    /// The section of that number.
    pub fn section(&self, id: SectionId) -> Option<&Section<'a>> {
        self.sections.get(id.0 as usize)
    }

    /// The first section of that name.
    pub fn section_named(&self, name: &[u8]) -> Option<&Section<'a>> {
        self.sections
            .iter()
            .skip(1)
            .find(|section| section.name.as_bytes() == name)
    }

    /// The symbol of that number.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.0 as usize)
    }

    /// The name of a symbol, empty if it has none; `None` if it is not where the
    /// file says.
    pub fn symbol_name(&self, symbol: &Symbol) -> Option<Name<'a>> {
        text_at(self.symbol_names?, symbol.name_offset)
    }

    /// What to call a symbol: a section's has no name of its own.
    pub fn display_name(&self, symbol: &Symbol) -> Name<'a> {
        match symbol.place {
            SymbolPlace::Section(id)
                if symbol.kind == SymbolKind::Section && symbol.name_offset == 0 =>
            {
                self.section(id)
                    .map(|section| section.name)
                    .unwrap_or_default()
            }
            _ => self.symbol_name(symbol).unwrap_or_default(),
        }
    }

    /// The relocations in a section, in the order of the file.
    pub fn relocations(
        &self,
        section: &Section<'a>,
    ) -> Result<impl ExactSizeIterator<Item = Relocation> + 'a + use<'a>, ElfFault> {
        let data = section.data()?;
        let count = data.len() / size_of::<RawRelocation>();
        let raw = pod::slice_from_bytes::<RawRelocation>(data, count);
        let (raw, _) = raw.map_err(|()| ElfFault::BadRelocations)?;
        Ok(raw.iter().map(|raw| Relocation {
            offset: raw.r_offset(LittleEndian),
            symbol: SymbolId(raw.r_sym(LittleEndian)),
            kind: raw.r_type(LittleEndian).0,
        }))
    }

    /// The relocations in a section, each with the symbol that it refers to.
    pub fn references(
        &self,
        section: &Section<'a>,
    ) -> Result<impl ExactSizeIterator<Item = Result<(Relocation, &Symbol), ElfFault>>, ElfFault>
    {
        let with_symbol = |relocation: Relocation| {
            let id = relocation.symbol;
            let unknown = ElfFault::NoSuchSymbol { symbol: id.0 };
            Ok((relocation, self.symbol(id).ok_or(unknown)?))
        };
        Ok(self.relocations(section)?.map(with_symbol))
    }
}

fn check_header(file: &[u8]) -> Result<&Header, ElfFault> {
    let ident = file.get(..16).filter(|ident| ident.starts_with(b"\x7fELF"));
    let ident = ident.ok_or(ElfFault::NotElf)?;
    if ident[4] != ELFCLASS64.0 {
        return Err(ElfFault::Not64Bit);
    }
    let word = |at| {
        file.get(at..at + 2)
            .map(|bytes: &[u8]| [bytes[0], bytes[1]])
    };
    let (kind, machine) = match (ident[5], word(16), word(18)) {
        (order, Some(kind), Some(machine)) if order == ELFDATA2LSB.0 => {
            (u16::from_le_bytes(kind), u16::from_le_bytes(machine))
        }
        (order, Some(kind), Some(machine)) if order == ELFDATA2MSB.0 => {
            (u16::from_be_bytes(kind), u16::from_be_bytes(machine))
        }
        (_, None, _) | (_, _, None) => {
            return Err(ElfFault::Damaged("the file ends in its header".into()));
        }
        _ => return Err(ElfFault::UnknownByteOrder),
    };
    if kind != ET_REL.0 {
        return Err(ElfFault::NotRelocatable { kind });
    }
    // Old compilers left the machine out.
    if machine != EM_BPF.0 && machine != EM_NONE.0 {
        return Err(ElfFault::WrongMachine { machine });
    }
    if ident[5] != ELFDATA2LSB.0 {
        return Err(ElfFault::ForeignByteOrder);
    }
    Header::parse(file).map_err(|error| ElfFault::Damaged(error.to_string()))
}

impl<'a> Section<'a> {
    fn read(
        raw: &'a RawSection,
        id: SectionId,
        file: &'a [u8],
        names: &'a [u8],
    ) -> Result<Section<'a>, ElfFault> {
        let kind = match raw.sh_type(LittleEndian) {
            SHT_PROGBITS => SectionKind::Bytes,
            SHT_NOBITS => SectionKind::Zeros,
            SHT_REL => SectionKind::Relocations,
            SHT_STRTAB => SectionKind::Names,
            SHT_SYMTAB => SectionKind::Symbols,
            other if other.0 == ADDRESS_SIGNIFICANCE => SectionKind::AddressSignificance,
            other => SectionKind::Other(other.0),
        };
        let name = match id {
            SectionId(0) => Name::default(),
            _ => text_at(names, raw.sh_name(LittleEndian)).ok_or(ElfFault::NoName)?,
        };
        Ok(Section {
            id,
            name,
            kind,
            flags: raw.sh_flags(LittleEndian).0,
            executable: raw.sh_flags(LittleEndian).0 & SHF_EXECINSTR.0 != 0,
            compressed: raw.sh_flags(LittleEndian).0 & SHF_COMPRESSED.0 != 0,
            size: raw.sh_size(LittleEndian),
            link: SectionId(raw.sh_link(LittleEndian)),
            target: SectionId(raw.sh_info(LittleEndian)),
            entry_size: raw.sh_entsize(LittleEndian),
            align: raw.sh_addralign(LittleEndian),
            offset: raw.sh_offset(LittleEndian),
            data: raw.data(LittleEndian, file).ok(),
            unit: unit(raw),
        })
    }

    /// Its bytes; none if the file holds none of them.
    pub fn data(&self) -> Result<&'a [u8], ElfFault> {
        let is_whole = self.unit == 1 || self.size.is_multiple_of(self.unit);
        if !is_whole && self.kind != SectionKind::Zeros {
            return Err(ElfFault::EntryCut {
                size: self.size,
                entry: self.unit,
            });
        }
        self.data.ok_or(ElfFault::SectionCut)
    }
}

/// Bytes of each entry of a section, by its kind; 1 where it is just bytes.
fn unit(raw: &RawSection) -> u64 {
    match raw.sh_type(LittleEndian) {
        SHT_SYMTAB | SHT_DYNSYM | SHT_RELA => 24,
        SHT_REL | SHT_DYNAMIC => 16,
        SHT_INIT_ARRAY | SHT_FINI_ARRAY | SHT_PREINIT_ARRAY => 8,
        SHT_HASH | SHT_GROUP | SHT_SYMTAB_SHNDX => 4,
        SHT_GNU_LIBLIST => 20,
        SHT_GNU_VERNEED => 16,
        SHT_GNU_VERSYM => 2,
        _ => 1,
    }
}

impl Symbol {
    fn read(raw: &RawSymbol, id: SymbolId) -> Symbol {
        let place = match raw.st_shndx(LittleEndian).0 {
            0 => SymbolPlace::Undefined,
            special if special >= SHN_LORESERVE => SymbolPlace::Special(special),
            section => SymbolPlace::Section(SectionId(section.into())),
        };
        Symbol {
            id,
            place,
            value: raw.st_value(LittleEndian),
            size: raw.st_size(LittleEndian),
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
            name_offset: raw.st_name(LittleEndian),
        }
    }

    /// Does it stand for something that another file or the kernel has?
    pub fn is_extern(&self) -> bool {
        self.place == SymbolPlace::Undefined
            && matches!(self.binding, Binding::Global | Binding::Weak)
            && self.kind == SymbolKind::None
    }

    /// The number of its section as the file has it, special numbers too.
    pub fn section_number(&self) -> u32 {
        match self.place {
            SymbolPlace::Undefined => 0,
            SymbolPlace::Section(id) => id.0,
            SymbolPlace::Special(number) => number.into(),
        }
    }

    /// The section that it is in, if it is in one.
    pub fn section(&self) -> Option<SectionId> {
        match self.place {
            SymbolPlace::Section(id) => Some(id),
            _ => None,
        }
    }
}

/// The longest name, in bytes: many symbols may share one, and each reads it.
const LONGEST_NAME: usize = 4096;

/// The text that starts there and ends with a NUL.
fn text_at(section: &[u8], offset: u32) -> Option<Name<'_>> {
    let rest = section.get(offset as usize..)?;
    let rest = &rest[..rest.len().min(LONGEST_NAME + 1)];
    let len = rest.iter().position(|&byte| byte == 0)?;
    Some(Name::new(&rest[..len]))
}
