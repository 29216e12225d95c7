//! Output of static linking: the object and its ELF layout.
//!
//! Sections are in the order of their headers, section and symbol names share one string
//! table, and the headers are at the end: libelf's layout, so that the bytes equal those
//! of libbpf's linker.

use std::collections::HashMap;

use btf::ext::{CoreRelo, ExtFuncInfo, ExtLineInfo};
use btf::{Name, VarSecinfo};

use super::{LinkFault, SectionMismatch};
use crate::Error;
use crate::elf::{Section, SectionKind};

/// Index of the string table.
const NAMES: usize = 1;
/// Index of the symbol table.
pub(super) const SYMBOLS: usize = 2;

/// Size of the file header, and of a section header, in bytes.
const HEADER: usize = 64;
/// Size of a symbol in bytes.
const SYMBOL: usize = 24;
/// Maximum number of padding bytes.
const MAX_PADDING: u64 = 64 << 20;
/// Maximum size of a section in bytes.
const MAX_SIZE: u64 = i32::MAX as u64;
/// First reserved section index (SHN_LORESERVE).
const FIRST_SPECIAL: usize = 0xff00;

/// Object that is being linked.
pub(super) struct Output {
    /// Sections in the order of their first occurrence; index 0 is none.
    pub(super) sections: Vec<OutputSection>,
    /// First section with each name.
    by_name: HashMap<Vec<u8>, usize>,
    pub(super) symbols: Vec<OutputSymbol>,
    pub(super) names: Names,
    /// Number of section headers, the null header included.
    headers: usize,
    padding: u64,
}

/// Section of the output.
#[derive(Default)]
pub(super) struct OutputSection {
    pub(super) name: Vec<u8>,
    /// Section header; `None` for a DATASEC without a section.
    pub(super) header: Option<Header>,
    /// Size in bytes, SHT_NOBITS included.
    pub(super) size: u64,
    pub(super) data: Vec<u8>,
    /// Section symbol; 0 is none.
    pub(super) symbol: usize,
    /// Variables, if it has a DATASEC.
    pub(super) variables: Option<Vec<VarSecinfo>>,
    /// BTF.ext records of its instructions.
    pub(super) functions: Vec<ExtFuncInfo>,
    pub(super) lines: Vec<ExtLineInfo>,
    pub(super) relocations: Vec<CoreRelo>,
}

/// Section header.
#[derive(Clone, Copy)]
pub(super) struct Header {
    /// Section index in the file.
    pub(super) index: usize,
    name: u32,
    pub(super) kind: u32,
    pub(super) flags: u64,
    pub(super) link: usize,
    pub(super) info: usize,
    pub(super) align: u64,
    pub(super) entry_size: u64,
}

/// Symbol of the output.
#[derive(Clone, Copy, Default)]
pub(super) struct OutputSymbol {
    pub(super) name: u32,
    pub(super) info: u8,
    pub(super) other: u8,
    pub(super) section: u16,
    pub(super) value: u64,
    pub(super) size: u64,
}

/// String table of section and symbol names, each once.
pub(super) struct Names {
    bytes: Vec<u8>,
    offsets: HashMap<Vec<u8>, u32>,
}

impl Names {
    /// Offset of a name, added if it is new.
    pub(super) fn add(&mut self, name: &[u8]) -> u32 {
        if let Some(&at) = self.offsets.get(name) {
            return at;
        }
        let at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        self.offsets.insert(name.to_vec(), at);
        at
    }
}

impl Output {
    /// Output with the string table and symbol table only.
    pub(super) fn new() -> Output {
        let mut output = Output {
            sections: vec![OutputSection::default()],
            by_name: HashMap::new(),
            symbols: vec![OutputSymbol::default()],
            names: Names {
                bytes: vec![0],
                offsets: HashMap::from([(Vec::new(), 0)]),
            },
            headers: 1,
            padding: 0,
        };
        const STRINGS: u64 = 0x20;
        output.add_table(b".strtab", 3, STRINGS, 1, 0);
        output.add_table(b".symtab", 2, 0, 8, SYMBOL as u64);
        if let Some(header) = &mut output.sections[SYMBOLS].header {
            header.link = NAMES;
        }
        output
    }

    fn add_table(&mut self, name: &[u8], kind: u32, flags: u64, align: u64, entry_size: u64) {
        let section = self.add_section(name);
        let header = self.header(name, kind, flags, align, entry_size);
        self.sections[section].header = Some(header);
    }

    fn header(
        &mut self,
        name: &[u8],
        kind: u32,
        flags: u64,
        align: u64,
        entry_size: u64,
    ) -> Header {
        self.headers += 1;
        Header {
            index: self.headers - 1,
            name: self.names.add(name),
            kind,
            flags,
            link: 0,
            info: 0,
            align,
            entry_size,
        }
    }

    /// Section with this name.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Adds a section without header.
    pub(super) fn add_section(&mut self, name: &[u8]) -> usize {
        let number = self.sections.len();
        self.by_name.entry(name.to_vec()).or_insert(number);
        self.sections.push(OutputSection {
            name: name.to_vec(),
            ..OutputSection::default()
        });
        number
    }

    /// Section index in the file; 0 for one without header.
    pub(super) fn number(&self, section: usize) -> usize {
        self.sections[section]
            .header
            .map_or(0, |header| header.index)
    }

    /// Adds a header like that of an input section, if there is none yet.
    pub(super) fn ensure_header(&mut self, to: usize, from: &Section<'_>) -> Result<(), LinkFault> {
        if self.sections[to].header.is_none() {
            if self.headers >= FIRST_SPECIAL {
                return Err(LinkFault::TooLarge);
            }
            let (align, entry_size) = (from.align, from.entry_size);
            let name = from.name.as_bytes();
            let header = self.header(name, number(from.kind), from.flags, align, entry_size);
            self.sections[to].header = Some(header);
        }
        Ok(())
    }

    /// Checks that an input section can be appended to an output section.
    pub(super) fn check_match(&self, to: usize, from: &Section<'_>) -> Result<(), LinkFault> {
        let Some(header) = &self.sections[to].header else {
            return Ok(());
        };
        let differs = if header.kind != number(from.kind) {
            SectionMismatch::Kind
        } else if header.flags != from.flags {
            SectionMismatch::Flags
        } else if header.entry_size != from.entry_size {
            SectionMismatch::EntrySize
        } else {
            return Ok(());
        };
        Err(LinkFault::SectionsDiffer(differs))
    }

    /// Appends an input section to one with a header; returns its offset in bytes there.
    pub(super) fn append(
        &mut self,
        to: usize,
        from: &Section<'_>,
        data: &[u8],
    ) -> Result<u64, LinkFault> {
        let section = &mut self.sections[to];
        let Some(header) = &mut section.header else {
            return Ok(0);
        };
        header.align = header.align.max(from.align);
        let start = section.size.checked_next_multiple_of(header.align);
        let end = start.and_then(|start| start.checked_add(from.size));
        let (Some(start), Some(end @ ..=MAX_SIZE)) = (start, end) else {
            return Err(LinkFault::TooLarge);
        };
        if from.kind != SectionKind::Zeros {
            self.padding += start - section.size;
            if self.padding > MAX_PADDING {
                return Err(LinkFault::TooLarge);
            }
            section.data.resize(start as usize, 0);
            section.data.extend_from_slice(data);
        }
        section.size = end;
        Ok(start)
    }

    /// Bytes of the file. `last` are unreferenced sections at the end.
    pub(super) fn write(mut self, last: Vec<(&str, Vec<u8>)>) -> Result<Vec<u8>, Error> {
        for (name, data) in last {
            const BYTES: u32 = 1;
            let header = self.header(name.as_bytes(), BYTES, 0, 8, 0);
            self.sections.push(OutputSection {
                header: Some(header),
                size: data.len() as u64,
                data,
                ..OutputSection::default()
            });
        }
        if self.headers >= FIRST_SPECIAL {
            return Err(LinkFault::TooLarge.into());
        }
        let symbols: Vec<u8> = self.symbols.iter().flat_map(OutputSymbol::bytes).collect();
        for (table, data) in [(NAMES, self.names.bytes), (SYMBOLS, symbols)] {
            self.sections[table].size = data.len() as u64;
            self.sections[table].data = data;
        }
        let mut sections = self.sections;
        sections.retain(|section| section.header.is_some());
        sections.sort_by_key(|section| section.header.map(|header| header.index));

        let mut file = vec![0; HEADER];
        let mut headers = vec![0; HEADER];
        let mut padding = 0;
        for section in &sections {
            let Some(header) = section.header else {
                continue;
            };
            if header.entry_size != 0 && !section.size.is_multiple_of(header.entry_size) {
                return Err(Error::from(LinkFault::EntrySize).in_section(Name::new(&section.name)));
            }
            let start = file.len().next_multiple_of(header.align as usize);
            padding += start - file.len();
            if padding as u64 > MAX_PADDING {
                return Err(LinkFault::TooLarge.into());
            }
            file.resize(start, 0);
            file.extend_from_slice(&section.data);
            headers.extend(header.bytes(start, section.size));
        }
        file.resize(file.len().next_multiple_of(8), 0);
        let start = file_header(file.len(), self.headers);
        file[..HEADER].copy_from_slice(&start);
        file.extend_from_slice(&headers);
        Ok(file)
    }
}

impl Header {
    fn bytes(&self, start: usize, size: u64) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.name.to_le_bytes());
        put(4, &self.kind.to_le_bytes());
        put(8, &self.flags.to_le_bytes());
        put(24, &(start as u64).to_le_bytes());
        put(32, &size.to_le_bytes());
        put(40, &(self.link as u32).to_le_bytes());
        put(44, &(self.info as u32).to_le_bytes());
        put(48, &self.align.to_le_bytes());
        put(56, &self.entry_size.to_le_bytes());
        out
    }
}

impl OutputSymbol {
    fn bytes(&self) -> [u8; SYMBOL] {
        let mut out = [0; SYMBOL];
        out[..4].copy_from_slice(&self.name.to_le_bytes());
        out[4] = self.info;
        out[5] = self.other;
        out[6..8].copy_from_slice(&self.section.to_le_bytes());
        out[8..16].copy_from_slice(&self.value.to_le_bytes());
        out[16..].copy_from_slice(&self.size.to_le_bytes());
        out
    }
}

/// ELF header of a relocatable BPF file with section headers at this offset.
fn file_header(sections: usize, count: usize) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    // 64 bits, little-endian, version 1.
    put(0, b"\x7fELF\x02\x01\x01");
    // Relocatable, for BPF, version 1.
    put(16, &[1, 0, 247, 0, 1]);
    put(40, &(sections as u64).to_le_bytes());
    put(52, &(HEADER as u16).to_le_bytes());
    put(58, &(HEADER as u16).to_le_bytes());
    put(60, &(count as u16).to_le_bytes());
    put(62, &(NAMES as u16).to_le_bytes());
    out
}

/// Section type of a kind.
pub(super) fn number(kind: SectionKind) -> u32 {
    match kind {
        SectionKind::Bytes => 1,
        SectionKind::Symbols => 2,
        SectionKind::Names => 3,
        SectionKind::Zeros => 8,
        SectionKind::Relocations => 9,
        SectionKind::AddressSignificance => 0x6fff_4c03,
        SectionKind::Other(kind) => kind,
    }
}
