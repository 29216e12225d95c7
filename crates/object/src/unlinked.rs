//! Objects as the compiler wrote them, for listings: of either byte order, with legacy map
//! definitions, and not relocated.
//!
//! libbpf 1.x refuses big-endian objects on little-endian machines, objects with map
//! definitions in `SEC("maps")` or, for other loaders, `SEC("maps/NAME")`, static programs,
//! extern maps, and maps with a `pinning` that it does not know. [`UnlinkedObject`] reads what such an object contains:
//! sections, programs and functions, map definitions, instructions with the symbols that
//! their relocations name. It reads BTF and BTF.ext only of this byte order, and for
//! source lines only.
//!
//! Time and memory are linear in the size of the file.

use std::collections::BTreeMap;

use btf::{Btf, BtfExt};
use isa::ebpf::{Callee, Imm64, Insn, RawInsn};
use program::LineInfo;
use spec::loader::LoaderKind;

use crate::elf::{Elf, Section, SectionId, SymbolId, SymbolKind};
use crate::error::Error;
use crate::object::license;
use crate::programs::{ProgramDef, ProgramDefs};
use crate::relocate::info::Info;
use crate::sections::{Role, Sections};
use crate::types::read_types;

/// An object whose programs are not linked.
#[derive(Debug)]
pub struct UnlinkedObject<'a> {
    elf: Elf<'a>,
    sections: Sections,
    programs: ProgramDefs<'a>,
    maps: Vec<UnlinkedMap>,
    types: Option<(Btf<'a>, BtfExt<'a>)>,
    license: String,
    refusal: Option<Error>,
    /// Symbol of each relocation, by section and slot.
    symbols: BTreeMap<(SectionId, usize), SymbolId>,
}

/// A map of an object that is not linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlinkedMap {
    /// Name.
    pub name: String,
    /// Section.
    pub section: SectionId,
    /// Offset in bytes from the start of the section.
    pub offset: u64,
    /// Legacy definition; `None` for a map that BTF defines (`.maps`) or BCC.
    pub definition: Option<LegacyMapDef>,
}

/// Legacy map definition (`struct bpf_map_def`); missing members are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegacyMapDef {
    /// Map type (`enum bpf_map_type`).
    pub map_type: u32,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
    /// Flags of the creation.
    pub flags: u32,
}

impl<'a> UnlinkedObject<'a> {
    /// Opens an object of either byte order, legacy map definitions included.
    pub fn open(file: &'a [u8]) -> Result<UnlinkedObject<'a>, Error> {
        let elf = Elf::parse_any_order(file)?;
        let sections = Sections::with_legacy_maps(&elf)?;
        let programs = ProgramDefs::with_static(&elf, &sections)?;
        let types = match elf.is_big_endian() {
            true => (None, None),
            false => read_types(&elf, &sections, LoaderKind::Libbpf.rules()).unwrap_or_default(),
        };
        let mut object = UnlinkedObject {
            maps: Vec::new(),
            types: types.0.zip(types.1),
            license: license(&elf, &sections),
            refusal: None,
            symbols: BTreeMap::new(),
            elf,
            sections,
            programs,
        };
        object.read_maps()?;
        object.read_relocations()?;
        Ok(object)
    }

    fn read_maps(&mut self) -> Result<(), Error> {
        let legacy = self.sections.legacy_maps.clone();
        for section in self.sections.maps.into_iter().chain(legacy.clone()) {
            let mut found: Vec<UnlinkedMap> = (self.elf.symbols().iter())
                .filter(|symbol| symbol.section() == Some(section))
                .filter(|symbol| matches!(symbol.kind, SymbolKind::Variable | SymbolKind::None))
                .map(|symbol| UnlinkedMap {
                    name: self.elf.display_name(symbol).to_string(),
                    section,
                    offset: symbol.value,
                    definition: None,
                })
                .collect();
            found.sort_by_key(|map| map.offset);
            if legacy.contains(&section)
                && let Some(section) = self.elf.section(section)
            {
                let mut end = section.size;
                // A section "maps/counts" defines counts; other names there are kinds of
                // maps, whose definitions BCC makes.
                let name = section.name.to_string();
                let only = name.strip_prefix("maps/");
                let defined = found.iter_mut().rev();
                for map in defined.filter(|map| only.is_none_or(|only| only == map.name)) {
                    map.definition = Some(self.definition(section, map.offset..end)?);
                    end = map.offset;
                }
            }
            self.maps.append(&mut found);
        }
        Ok(())
    }

    /// Definition in a range of the section; one of another length has its first members.
    fn definition(
        &self,
        section: &Section<'_>,
        range: std::ops::Range<u64>,
    ) -> Result<LegacyMapDef, Error> {
        let bytes = section.data()?;
        let bytes = bytes.get(range.start as usize..range.end as usize);
        let (words, _) = bytes.unwrap_or_default().as_chunks::<4>();
        let mut words = words.iter().map(|&word| match self.elf.is_big_endian() {
            true => u32::from_be_bytes(word),
            false => u32::from_le_bytes(word),
        });
        let mut next = || words.next().unwrap_or(0);
        Ok(LegacyMapDef {
            map_type: next(),
            key_size: next(),
            value_size: next(),
            max_entries: next(),
            flags: next(),
        })
    }

    fn read_relocations(&mut self) -> Result<(), Error> {
        for &id in &self.sections.relocations {
            let Some(table) = self.elf.section(id) else {
                continue;
            };
            if self.sections.role(table.target) != Role::Code {
                continue;
            }
            for relocation in self.elf.relocations(table)? {
                let slot = (relocation.offset / 8) as usize;
                let place = (table.target, slot);
                self.symbols.insert(place, relocation.symbol);
            }
        }
        Ok(())
    }

    /// States why the loader refuses the object.
    #[must_use]
    pub fn refused_for(mut self, error: Error) -> UnlinkedObject<'a> {
        self.refusal = Some(error);
        self
    }

    /// Reason why the loader refuses the object, if it is stated.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// True if the object is for machines of the other byte order.
    pub fn is_big_endian(&self) -> bool {
        self.elf.is_big_endian()
    }

    /// True if maps are defined in a section `maps`, which libbpf dropped with version 1.0,
    /// or in sections `maps/NAME` of other loaders.
    pub fn has_legacy_maps(&self) -> bool {
        !self.sections.legacy_maps.is_empty()
    }

    /// Licence; empty if none is stated.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// Tables of the file.
    pub fn elf(&self) -> &Elf<'a> {
        &self.elf
    }

    /// Programs and functions.
    pub fn program_defs(&self) -> &ProgramDefs<'a> {
        &self.programs
    }

    /// Maps by section and offset.
    pub fn maps(&self) -> &[UnlinkedMap] {
        &self.maps
    }

    /// Instructions of a program or function, decoded in the byte order of the object.
    pub fn insns(&self, code: &ProgramDef<'_>) -> Vec<RawInsn> {
        let decode = match self.is_big_endian() {
            true => RawInsn::from_be_bytes,
            false => RawInsn::from_le_bytes,
        };
        code.slots.iter().map(|&bytes| decode(bytes)).collect()
    }

    /// Name of what an instruction refers to: a map, variable, function or extern. `slot`
    /// is the index from the start of the program or function.
    pub fn reference(&self, code: &ProgramDef<'_>, slot: usize, insn: Insn) -> Option<String> {
        let slot = code.start + slot;
        let symbol = self.symbols.get(&(code.section, slot));
        let symbol = symbol.and_then(|&id| self.elf.symbol(id));
        if let Insn::Call(Callee::Local(skip)) = insn
            && let Some((section, from)) = match symbol {
                None => Some((code.section, slot)),
                // The call counts from the start of the section.
                Some(symbol) if symbol.kind == SymbolKind::Section => {
                    symbol.section().map(|section| (section, 0))
                }
                Some(_) => None,
            }
        {
            // The immediate counts from the next slot; that of a section symbol is less 1.
            let target = i64::try_from(from).ok()? + i64::from(skip) + 1;
            return self.function_at(section, usize::try_from(target).ok()?);
        }
        let symbol = symbol?;
        let name = self.elf.display_name(symbol).to_string();
        match (insn, symbol.section()) {
            (Insn::LoadImm64 { imm, .. }, Some(section)) if symbol.kind == SymbolKind::Section => {
                let offset = immediate(imm)?;
                if self.sections.role(section) == Role::Code {
                    return self.function_at(section, (offset / 8) as usize);
                }
                Some(self.map_at(section, offset).unwrap_or(match offset {
                    0 => name,
                    _ => format!("{name}+{offset}"),
                }))
            }
            _ => Some(name),
        }
    }

    fn function_at(&self, section: SectionId, slot: usize) -> Option<String> {
        let function = self.programs.get(self.programs.at(section, slot)?)?;
        Some(match slot - function.start {
            0 => function.name.to_string(),
            into => format!("{}+{into}", function.name),
        })
    }

    fn map_at(&self, section: SectionId, offset: u64) -> Option<String> {
        let at = |map: &&UnlinkedMap| (map.section, map.offset) == (section, offset);
        self.maps.iter().find(at).map(|map| map.name.clone())
    }

    /// BTF of this byte order.
    pub fn btf(&self) -> Option<&Btf<'a>> {
        self.types.as_ref().map(|(types, _)| types)
    }

    /// line_info of a program or function, from its start.
    pub fn line_info(&self, code: &ProgramDef<'_>) -> Vec<LineInfo> {
        let mut lines = Vec::new();
        if let Some((types, ext)) = &self.types {
            Info::of(&self.elf, types, ext).add_lines(code, 0, &mut lines);
        }
        lines
    }
}

/// Addend that a 64-bit immediate load has before relocation.
fn immediate(imm: Imm64) -> Option<u64> {
    match imm {
        Imm64::Value(value) => Some(value.get()),
        _ => None,
    }
}
