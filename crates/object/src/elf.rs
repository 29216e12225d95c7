//! Tables of the ELF file: sections, symbols, relocations.
//!
//! Later steps read these tables only. They are made in one pass and borrow the bytes of
//! the file. Faults of a section are reported when the section is read, because damaged
//! debug sections do not affect programs.
//!
//! One allocation for each table.

mod fault;
mod symbol;

use btf::Name;
use elf_file::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, EM_BPF, EM_NONE, ET_REL, FileHeader64, SHF_COMPRESSED,
    SHF_EXECINSTR, SHT_DYNAMIC, SHT_DYNSYM, SHT_FINI_ARRAY, SHT_GNU_LIBLIST, SHT_GNU_VERNEED,
    SHT_GNU_VERSYM, SHT_GROUP, SHT_HASH, SHT_INIT_ARRAY, SHT_NOBITS, SHT_PREINIT_ARRAY,
    SHT_PROGBITS, SHT_REL, SHT_RELA, SHT_STRTAB, SHT_SYMTAB, SHT_SYMTAB_SHNDX, SectionType,
};
use elf_file::read::elf::{FileHeader, SectionHeader};
use elf_file::{BigEndian, Endian, LittleEndian, pod};

use crate::error::Error;

pub use fault::ElfFault;
pub use symbol::{Binding, Symbol, SymbolKind, SymbolPlace};

/// Index of a section in its file; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u32);

/// Index of a symbol in its file; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// Tables of an ELF file.
#[derive(Clone, Debug)]
pub struct Elf<'a> {
    /// Machine of the header: EM_BPF, or 0.
    machine: u16,
    is_big_endian: bool,
    sections: Vec<Section<'a>>,
    /// Sections but the first, sorted by name and index.
    by_name: Vec<SectionId>,
    symbols: Vec<Symbol>,
    /// Symbol table.
    symbol_table: SectionId,
    /// String table of symbol names.
    symbol_names: Option<&'a [u8]>,
}

/// A section.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Section index.
    pub id: SectionId,
    /// Name.
    pub name: Name<'a>,
    /// Kind of contents.
    pub kind: SectionKind,
    /// Flags (`sh_flags`).
    pub flags: u64,
    /// True if the section contains instructions (SHF_EXECINSTR).
    pub executable: bool,
    /// True if the bytes are compressed.
    pub compressed: bool,
    /// Size in bytes, also of a section without bytes in the file.
    pub size: u64,
    /// Linked section (`sh_link`): string table of a symbol table, symbol table of
    /// relocations.
    pub link: SectionId,
    /// Section that relocations apply to (`sh_info`).
    pub target: SectionId,
    /// Size of an entry in bytes, for tables.
    pub entry_size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Bytes; `None` if they reach beyond the file.
    data: Option<&'a [u8]>,
    /// Size of an entry in bytes implied by the kind of section, independent of
    /// `entry_size`.
    unit: u64,
}

/// Kind of section contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// Bytes of the program (SHT_PROGBITS).
    Bytes,
    /// Zeros without bytes in the file (SHT_NOBITS).
    Zeros,
    /// Relocations without addends (SHT_REL).
    Relocations,
    /// String table (SHT_STRTAB).
    Names,
    /// Symbol table (SHT_SYMTAB).
    Symbols,
    /// LLVM's table of address-significant symbols.
    AddressSignificance,
    /// Another section type.
    Other(u32),
}

/// A relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset in bytes from the start of the relocated section.
    pub offset: u64,
    /// Symbol.
    pub symbol: SymbolId,
    /// Relocation type (`R_BPF_64_64` and so on).
    pub kind: u32,
}

type RawSection<E> = elf_file::elf::SectionHeader64<E>;
type RawSymbol<E> = elf_file::elf::Sym64<E>;

/// `SHT_LLVM_ADDRSIG`.
const ADDRESS_SIGNIFICANCE: u32 = 0x6fff_4c03;

impl<'a> Elf<'a> {
    /// Parses a relocatable ELF file for BPF of this byte order.
    pub fn parse(file: &'a [u8]) -> Result<Elf<'a>, Error> {
        match is_big_endian(file)? {
            true => Err(ElfFault::ForeignByteOrder.into()),
            false => Elf::read(file, LittleEndian),
        }
    }

    /// Parses a relocatable ELF file for BPF of either byte order.
    pub fn parse_any_order(file: &'a [u8]) -> Result<Elf<'a>, Error> {
        match is_big_endian(file)? {
            true => Elf::read(file, BigEndian),
            false => Elf::read(file, LittleEndian),
        }
    }

    fn read<E: Endian>(file: &'a [u8], order: E) -> Result<Elf<'a>, Error> {
        let damaged = |error: elf_file::read::Error| ElfFault::Damaged(error.to_string());
        let header = FileHeader64::<E>::parse(file).map_err(damaged)?;
        let count = header.shnum(order, file).map_err(damaged)?;
        // The entry size in the header is ignored.
        let offset = header.e_shoff(order);
        let table = usize::try_from(offset).ok();
        let table = table
            .and_then(|start| file.get(start..))
            .unwrap_or_default();
        let cut = |()| {
            let len = file.len();
            ElfFault::Damaged(format!(
                "{count} section headers from byte {offset} on exceed the file's {len} bytes"
            ))
        };
        let (raw, _) =
            pod::slice_from_bytes::<RawSection<E>>(table, count as usize).map_err(cut)?;
        let names = header
            .shstrndx(order, file)
            .map_err(damaged)
            .map(|index| raw.get(index as usize))?
            .and_then(|section| {
                let data = section.data(order, file).ok()?;
                Some((section.sh_type(order), data))
            });
        let nameless = || ElfFault::Damaged("section names are missing".into());
        let (kind, names) = names.ok_or_else(nameless)?;
        // A missing symbol table is reported first, since the user can fix it.
        let is_symbols = |section: &RawSection<E>| section.sh_type(order) == SHT_SYMTAB;
        if !raw.iter().any(is_symbols) {
            return Err(ElfFault::NoSymbols.into());
        }
        if kind != SHT_STRTAB {
            return Err(nameless().into());
        }
        let mut sections = Vec::with_capacity(raw.len());
        for (raw, index) in raw.iter().zip(0..) {
            sections.push(Section::read(raw, SectionId(index), file, names, order)?);
        }
        let mut elf = Elf {
            machine: header.e_machine(order).0,
            is_big_endian: order.is_big_endian(),
            sections,
            by_name: Vec::new(),
            symbols: Vec::new(),
            symbol_table: SectionId(0),
            symbol_names: None,
        };
        elf.by_name = (1..elf.sections.len() as u32).map(SectionId).collect();
        let sections = &elf.sections;
        elf.by_name
            .sort_by_key(|id| (sections[id.0 as usize].name.as_bytes(), *id));
        elf.read_symbols(order)?;
        Ok(elf)
    }

    fn read_symbols<E: Endian>(&mut self, order: E) -> Result<(), ElfFault> {
        let mut tables = self
            .sections
            .iter()
            .filter(|section| section.kind == SectionKind::Symbols);
        let table = *tables.next().ok_or(ElfFault::NoSymbols)?;
        if tables.next().is_some() {
            return Err(ElfFault::SeveralSymbolTables);
        }
        let data = table.data()?;
        if table.entry_size != size_of::<RawSymbol<E>>() as u64 {
            return Err(ElfFault::BadSymbolTable);
        }
        let names = match self.section(table.link) {
            Some(names) if table.link != SectionId(0) => names,
            _ => return Err(ElfFault::BadSymbolTable),
        };
        self.symbol_names = names.data.filter(|_| names.kind == SectionKind::Names);
        self.symbol_table = table.id;
        let count = data.len() / size_of::<RawSymbol<E>>();
        let raw = pod::slice_from_bytes::<RawSymbol<E>>(data, count);
        let (raw, _) = raw.map_err(|()| ElfFault::BadSymbolTable)?;
        self.symbols = raw
            .iter()
            .zip(0..)
            .map(|(raw, id)| Symbol::read(raw, SymbolId(id), order))
            .collect();
        Ok(())
    }

    /// True if the header states BPF as its machine; old compilers state 0.
    pub fn names_machine(&self) -> bool {
        self.machine == EM_BPF.0
    }

    /// True if the file is for machines of the other byte order.
    pub fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// Sections, index 0 included, which is none.
    pub fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// Symbols, index 0 included, which is none.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Symbol table.
    pub fn symbol_table(&self) -> SectionId {
        self.symbol_table
    }

    /// Section with this index.
    pub fn section(&self, id: SectionId) -> Option<&Section<'a>> {
        self.sections.get(id.0 as usize)
    }

    /// First section with this name.
    pub fn section_named(&self, name: &[u8]) -> Option<&Section<'a>> {
        let name_of = |id: &SectionId| self.sections[id.0 as usize].name.as_bytes();
        let at = self.by_name.partition_point(|id| name_of(id) < name);
        let found = self.by_name.get(at).filter(|id| name_of(id) == name);
        self.section(*found?)
    }

    /// Symbol with this index.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.0 as usize)
    }

    /// Name of a symbol, empty if it has none; `None` if it is out of range.
    pub fn symbol_name(&self, symbol: &Symbol) -> Option<Name<'a>> {
        text_at(self.symbol_names?, symbol.name_offset)
    }

    /// Name of a symbol for messages: that of its section for a section symbol.
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

    /// Relocations of a section, in file order.
    pub fn relocations(
        &self,
        section: &Section<'a>,
    ) -> Result<impl ExactSizeIterator<Item = Relocation> + 'a + use<'a>, ElfFault> {
        let is_big_endian = self.is_big_endian;
        let (entries, _) = section.data()?.as_chunks();
        Ok(entries.iter().map(move |entry| match is_big_endian {
            true => Relocation::read(entry, BigEndian),
            false => Relocation::read(entry, LittleEndian),
        }))
    }

    /// Relocations of a section, each with its symbol.
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

/// Checks that a file is an object for BPF; true if it is big-endian.
fn is_big_endian(file: &[u8]) -> Result<bool, ElfFault> {
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
    // Old compilers state machine 0.
    if machine != EM_BPF.0 && machine != EM_NONE.0 {
        return Err(ElfFault::WrongMachine { machine });
    }
    Ok(ident[5] == ELFDATA2MSB.0)
}

impl<'a> Section<'a> {
    fn read<E: Endian>(
        raw: &'a RawSection<E>,
        id: SectionId,
        file: &'a [u8],
        names: &'a [u8],
        order: E,
    ) -> Result<Section<'a>, ElfFault> {
        let kind = match raw.sh_type(order) {
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
            _ => text_at(names, raw.sh_name(order)).ok_or(ElfFault::NoName)?,
        };
        Ok(Section {
            id,
            name,
            kind,
            flags: raw.sh_flags(order).0,
            executable: raw.sh_flags(order).0 & SHF_EXECINSTR.0 != 0,
            compressed: raw.sh_flags(order).0 & SHF_COMPRESSED.0 != 0,
            size: raw.sh_size(order),
            link: SectionId(raw.sh_link(order)),
            target: SectionId(raw.sh_info(order)),
            entry_size: raw.sh_entsize(order),
            align: raw.sh_addralign(order),
            offset: raw.sh_offset(order),
            data: raw.data(order, file).ok(),
            unit: unit(raw.sh_type(order)),
        })
    }

    /// Bytes of the section; empty if it has none in the file.
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

/// Size in bytes of an entry of a section by its type; 1 for plain bytes.
fn unit(kind: SectionType) -> u64 {
    match kind {
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

impl Relocation {
    fn read<E: Endian>(entry: &[u8; 16], order: E) -> Relocation {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&entry[at..at + 8]);
            order.read_u64(bytes)
        };
        let info = word(8);
        Relocation {
            offset: word(0),
            symbol: SymbolId((info >> 32) as u32),
            kind: info as u32,
        }
    }
}

/// Maximum length of a name in bytes, which bounds the time for many symbols with one
/// long name.
const MAX_NAME: usize = 4096;

/// NUL-terminated string at this offset.
fn text_at(section: &[u8], offset: u32) -> Option<Name<'_>> {
    let rest = section.get(offset as usize..)?;
    let rest = &rest[..rest.len().min(MAX_NAME + 1)];
    let len = rest.iter().position(|&byte| byte == 0)?;
    Some(Name::new(&rest[..len]))
}
