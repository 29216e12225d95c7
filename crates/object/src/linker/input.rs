//! An input file of static linking: its tables, checked for the invariants that linking
//! relies on, and its BTF.
//!
//! DATASECs without an ELF section, those of externs (`.ksyms`, `.kconfig`, maps of other
//! files), are parts without bytes.

use std::collections::HashMap;

use btf::ext::CoreRelo;
use btf::{Btf, BtfExt, Kind, Linkage, Name, Shape, StrOffset, Type, TypeId, VarSecinfo};

use super::{LinkFault, texts};
use crate::Error;
use crate::elf::{
    Binding, Elf, ElfFault, Section, SectionId, SectionKind, Symbol, SymbolKind, SymbolPlace,
};

/// DATASEC of externs without a section.
const EXTERNS: &[u8] = b".extern";
/// Size of a symbol-table entry in bytes.
const SYMBOL_SIZE: u64 = 24;
/// Size of a relocation in bytes.
const RELOCATION_SIZE: u64 = 16;
/// Size of an instruction in bytes.
pub(super) const SLOT: u64 = 8;
/// The kinds of relocations that there are: to a map or variable, to an absolute
/// address of 64 or 32 bits, to a function.
const RELOCATION_KINDS: [u32; 4] = [1, 2, 3, 10];

/// A file.
pub(super) struct Input<'a> {
    pub(super) name: String,
    pub(super) elf: Elf<'a>,
    /// The sections, by number, and then those that only the types know.
    pub(super) parts: Vec<Part<'a>>,
    /// The first part of each name.
    by_name: HashMap<Vec<u8>, usize>,
    pub(super) btf: Option<Btf<'a>>,
    pub(super) ext: Option<BtfExt<'a>>,
    /// Types of the visible symbols.
    types: HashMap<Vec<u8>, Result<SymbolType, LinkFault>>,
}

/// A section of an input file and its place in the output.
pub(super) struct Part<'a> {
    pub(super) name: Vec<u8>,
    /// Section; `None` for a DATASEC without one.
    pub(super) section: Option<Section<'a>>,
    /// True if the section is not part of the output.
    pub(super) is_left_out: bool,
    /// Variables of its DATASEC.
    pub(super) variables: Option<Vec<VarSecinfo>>,
    /// Section of the output.
    pub(super) to: usize,
    /// Offset in bytes in the output section.
    pub(super) at: u64,
}

/// Type of a symbol.
#[derive(Clone, Copy)]
pub(super) struct SymbolType {
    pub(super) id: TypeId,
    /// DATASEC that lists it.
    pub(super) section: Option<TypeId>,
}

impl<'a> Input<'a> {
    pub(super) fn read(name: String, bytes: &'a [u8]) -> Result<Input<'a>, Error> {
        let elf = Elf::parse(bytes)?;
        if !elf.names_machine() {
            return Err(ElfFault::WrongMachine { machine: 0 }.into());
        }
        texts::check_names(&elf)?;
        let mut by_name = HashMap::new();
        for section in &elf.sections()[1..] {
            let name = section.name.as_bytes().to_vec();
            by_name.entry(name).or_insert(section.id.0 as usize);
        }
        let mut input = Input {
            name,
            parts: elf.sections().iter().map(Part::new).collect(),
            by_name,
            elf,
            btf: None,
            ext: None,
            types: HashMap::new(),
        };
        input.read_types()?;
        input.check_sections()?;
        input.check_symbols()?;
        input.check_info()?;
        input.place_variables()?;
        input.index_types();
        Ok(input)
    }

    /// Type of a visible symbol.
    pub(super) fn type_of(&self, symbol: Name<'_>) -> Result<SymbolType, LinkFault> {
        match self.types.get(symbol.as_bytes()) {
            Some(found) => found.clone(),
            None if self.btf.is_none() => Err(LinkFault::NoTypes),
            None => Err(LinkFault::NoType),
        }
    }

    /// First part with this name.
    pub(super) fn part_named(&self, name: &[u8]) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Name of a symbol for messages.
    pub(super) fn text(&self, symbol: &Symbol) -> String {
        match self.elf.display_name(symbol) {
            name if name.is_empty() => format!("symbol {}", symbol.id.0),
            name => name.to_string(),
        }
    }

    fn read_types(&mut self) -> Result<(), Error> {
        for part in &mut self.parts[1..] {
            let Some(section) = part.section else {
                continue;
            };
            let data = section
                .data()
                .map_err(|fault| Error::from(fault).in_section(section.name))?;
            if part.is_left_out {
                continue;
            }
            let about = |fault: LinkFault| Error::from(fault).in_section(section.name);
            match (section.kind, section.name.as_bytes()) {
                (SectionKind::Bytes, b".BTF") => {
                    let btf = Btf::parse(data);
                    let btf = btf.map_err(|error| about(LinkFault::Types(error)))?;
                    texts::check_types(&btf).map_err(about)?;
                    self.btf = Some(btf);
                    part.is_left_out = true;
                }
                (SectionKind::Bytes, b".BTF.ext") => {
                    let ext = BtfExt::parse(data);
                    self.ext = Some(ext.map_err(|error| about(LinkFault::TypeInfo(error)))?);
                    part.is_left_out = true;
                }
                (SectionKind::Other(kind), _) => return Err(about(LinkFault::SectionKind(kind))),
                _ => {}
            }
        }
        Ok(())
    }

    fn check_sections(&self) -> Result<(), Error> {
        for section in &self.elf.sections()[1..] {
            if section.name.is_empty() {
                let index = section.id.0;
                return Err(LinkFault::NamelessSection { index }.into());
            }
            if !is_debug(section.name.as_bytes()) {
                self.check_section(section)
                    .map_err(|error| error.in_section(section.name))?;
            }
        }
        Ok(())
    }

    fn check_section(&self, section: &Section<'a>) -> Result<(), Error> {
        if !section.align.is_power_of_two() {
            return Err(LinkFault::Alignment(section.align).into());
        }
        if section.compressed {
            return Err(LinkFault::Compressed.into());
        }
        // SHT_NOBITS sections have no bytes in the file.
        let is_placed = section.offset > 0 && section.offset.is_multiple_of(section.align);
        if !is_placed && section.kind != SectionKind::Zeros {
            return Err(LinkFault::Misplaced {
                offset: section.offset,
                align: section.align,
            }
            .into());
        }
        match section.kind {
            SectionKind::Bytes if section.executable && !section.size.is_multiple_of(SLOT) => {
                Err(LinkFault::CodeSize(section.size).into())
            }
            SectionKind::Symbols if !section.size.is_multiple_of(SYMBOL_SIZE) => {
                Err(LinkFault::EntrySize.into())
            }
            SectionKind::Relocations => self.check_relocations(section),
            SectionKind::Other(kind) => Err(LinkFault::SectionKind(kind).into()),
            _ => Ok(()),
        }
    }

    fn check_relocations(&self, section: &Section<'a>) -> Result<(), Error> {
        if section.entry_size != RELOCATION_SIZE || !section.size.is_multiple_of(RELOCATION_SIZE) {
            return Err(LinkFault::EntrySize.into());
        }
        let target = self.elf.section(section.target);
        let target = target.filter(|target| target.id.0 != 0);
        let (Some(target), true) = (target, section.link == self.elf.symbol_table()) else {
            return Err(LinkFault::WrongLink.into());
        };
        if section.name.as_bytes().strip_prefix(b".rel") != Some(target.name.as_bytes()) {
            return Err(LinkFault::RelocationName.into());
        }
        if self.parts[target.id.0 as usize].is_left_out {
            return Ok(());
        }
        if !matches!(target.kind, SectionKind::Bytes | SectionKind::Zeros) {
            return Err(LinkFault::WrongLink.into());
        }
        for (index, relocation) in self.elf.relocations(section)?.enumerate() {
            let (kind, symbol) = (relocation.kind, relocation.symbol);
            if !RELOCATION_KINDS.contains(&kind) {
                return Err(LinkFault::RelocationKind { index, kind }.into());
            }
            if symbol.0 == 0 || self.elf.symbol(symbol).is_none() {
                return Err(ElfFault::NoSuchSymbol { symbol: symbol.0 }.into());
            }
            let offset = relocation.offset;
            if target.executable && !offset.is_multiple_of(SLOT) {
                return Err(ElfFault::RelocationOffset { offset }.into());
            }
        }
        Ok(())
    }

    fn check_symbols(&self) -> Result<(), Error> {
        for symbol in self.elf.symbols() {
            self.check_symbol(symbol)
                .map_err(|error| error.about(self.text(symbol)))?;
        }
        Ok(())
    }

    fn check_symbol(&self, symbol: &Symbol) -> Result<(), Error> {
        let is_bare = symbol.value == 0 && symbol.size == 0;
        let is_extern = symbol.place == SymbolPlace::Undefined;
        if symbol.id.0 == 0 {
            let is_empty = symbol.name_offset == 0 && symbol.info == 0 && symbol.other == 0;
            return match is_empty && is_extern && is_bare {
                true => Ok(()),
                false => Err(LinkFault::FirstSymbol.into()),
            };
        }
        if let Binding::Other(binding) = symbol.binding {
            return Err(LinkFault::Binding(binding).into());
        }
        if !matches!(symbol.other & 3, 0 | 2) {
            return Err(LinkFault::Visibility(symbol.other & 3).into());
        }
        match symbol.place {
            SymbolPlace::Undefined
                if symbol.kind != SymbolKind::None
                    || symbol.binding == Binding::Local
                    || !is_bare =>
            {
                Err(LinkFault::Extern.into())
            }
            SymbolPlace::Section(id) if self.elf.section(id).is_none() => {
                Err(ElfFault::NoSuchSection { section: id.0 }.into())
            }
            SymbolPlace::Section(_) | SymbolPlace::Special(_)
                if symbol.kind == SymbolKind::Section && symbol.value != 0 =>
            {
                Err(LinkFault::SectionSymbolValue.into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that BTF.ext refers to existing types, strings and sections.
    fn check_info(&self) -> Result<(), Error> {
        let Some(ext) = &self.ext else {
            return Ok(());
        };
        let about = |fault: LinkFault| Error::from(fault).in_section(".BTF.ext");
        let btf = self.btf.as_ref();
        let btf = btf.ok_or_else(|| about(LinkFault::InfoWithoutTypes))?;
        let is_type = |id: TypeId| (id.0 as usize) < btf.len();
        let is_text = |offset: StrOffset| (offset.0 as usize) < btf.strings().len();
        let functions = ext.functions().all(|group| {
            is_text(group.section) && group.records().all(|function| is_type(function.func))
        });
        let lines = ext.lines().all(|group| {
            let mut lines = group.records();
            is_text(group.section) && lines.all(|line| is_text(line.file) && is_text(line.text))
        });
        let relocations = ext.relocations().all(|group| {
            let mut relocations = group.records();
            is_text(group.section)
                && relocations.all(|CoreRelo { spec, .. }| is_type(spec.ty) && is_text(spec.access))
        });
        if !(functions && lines && relocations) {
            return Err(about(LinkFault::InfoOutOfRange));
        }
        texts::check_info(btf, ext).map_err(about)
    }

    /// Sets the variables of each section and their offsets: compilers leave the offsets
    /// of visible variables to the symbols.
    fn place_variables(&mut self) -> Result<(), Error> {
        let Some(btf) = self.btf.take() else {
            return Ok(());
        };
        let mut symbols: HashMap<(SectionId, Name<'a>), u64> = HashMap::new();
        for symbol in self.elf.symbols() {
            if let (SymbolKind::Variable, Some(section), Some(name)) =
                (symbol.kind, symbol.section(), self.elf.symbol_name(symbol))
            {
                symbols.entry((section, name)).or_insert(symbol.value);
            }
        }
        for ty in btf.types() {
            let Shape::Datasec(datasec) = ty.shape() else {
                continue;
            };
            let name = ty.name().as_bytes();
            let part = match self.part_named(name) {
                Some(part) => part,
                None if name == EXTERNS => continue,
                None if name.is_empty() => return Err(LinkFault::NamelessTypes(ty.id()).into()),
                None => {
                    self.parts.push(Part::of_types(name));
                    self.by_name.insert(name.to_vec(), self.parts.len() - 1);
                    self.parts.len() - 1
                }
            };
            let section = self.parts[part].section.map(|section| section.id);
            let mut variables: Vec<VarSecinfo> = datasec.vars().collect();
            for placed in &mut variables {
                let variable = btf.at(placed.var);
                let is_global = matches!(
                    variable.shape(), Shape::Var(var) if var.linkage == Linkage::GLOBAL
                );
                if !is_global {
                    continue;
                }
                let value = section.and_then(|section| symbols.get(&(section, variable.name())));
                let value = value.ok_or_else(|| {
                    Error::from(LinkFault::VariableWithoutSymbol)
                        .about(variable.name())
                        .in_section(ty.name())
                })?;
                placed.offset = *value as u32;
            }
            self.parts[part].variables = Some(variables);
        }
        self.btf = Some(btf);
        Ok(())
    }

    /// Indexes the type of each visible symbol: its variable or function, preferably the
    /// one in a DATASEC.
    fn index_types(&mut self) {
        let Some(btf) = &self.btf else {
            return;
        };
        let types = &mut self.types;
        for ty in btf.types() {
            if is_shared(ty) {
                let found = SymbolType {
                    id: ty.id(),
                    section: None,
                };
                let entry = types.entry(ty.name().as_bytes().to_vec());
                entry
                    .and_modify(|known| {
                        if matches!(known, Ok(SymbolType { section: None, .. })) {
                            *known = Ok(found);
                        }
                    })
                    .or_insert(Ok(found));
            }
            let Shape::Datasec(datasec) = ty.shape() else {
                continue;
            };
            for placed in datasec.vars() {
                let variable = btf.at(placed.var);
                if is_static(variable) {
                    continue;
                }
                let found = SymbolType {
                    id: placed.var,
                    section: Some(ty.id()),
                };
                let entry = types.entry(variable.name().as_bytes().to_vec());
                entry
                    .and_modify(|known| {
                        if let Ok(SymbolType { id, section: None }) = *known {
                            *known = match id == placed.var {
                                true => Ok(found),
                                false => Err(LinkFault::TwoTypes(id, placed.var)),
                            };
                        }
                    })
                    .or_insert(Ok(found));
            }
        }
    }
}

impl<'a> Part<'a> {
    fn new(section: &Section<'a>) -> Part<'a> {
        Part {
            name: section.name.as_bytes().to_vec(),
            section: Some(*section),
            is_left_out: is_left_out(section),
            variables: None,
            to: 0,
            at: 0,
        }
    }

    fn of_types(name: &[u8]) -> Part<'a> {
        Part {
            name: name.to_vec(),
            section: None,
            is_left_out: false,
            variables: None,
            to: 0,
            at: 0,
        }
    }

    /// True for sections of instructions and variables.
    pub(super) fn is_data(&self) -> bool {
        let is_data = self
            .section
            .is_none_or(|section| matches!(section.kind, SectionKind::Bytes | SectionKind::Zeros));
        is_data && !self.is_left_out
    }

    /// True for a relocation section.
    pub(super) fn is_relocations(&self) -> bool {
        let kind = self.section.map(|section| section.kind);
        kind == Some(SectionKind::Relocations) && !self.is_left_out
    }
}

/// True for a visible variable or function, defined or extern.
pub(super) fn is_shared(ty: Type<'_>) -> bool {
    matches!(ty.kind(), Kind::Var | Kind::Func) && !is_static(ty)
}

fn is_static(ty: Type<'_>) -> bool {
    match ty.shape() {
        Shape::Var(var) => var.linkage == Linkage::STATIC,
        Shape::Func(func) => func.linkage == Linkage::STATIC,
        _ => false,
    }
}

fn is_debug(name: &[u8]) -> bool {
    name.starts_with(b".debug_")
}

/// True for debug sections, sections that are rewritten, and unused ones.
fn is_left_out(section: &Section<'_>) -> bool {
    let name = section.name.as_bytes();
    let is_about_left_out = name
        .strip_prefix(b".rel")
        .is_some_and(|target| is_debug(target) || matches!(target, b".BTF" | b".BTF.ext"));
    let is_empty_code = section.kind == SectionKind::Bytes && section.size == 0 && name == b".text";
    matches!(
        section.kind,
        SectionKind::Names | SectionKind::AddressSignificance
    ) || is_empty_code
        || is_debug(name)
        || is_about_left_out
}
