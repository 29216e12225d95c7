//! Symbol resolution of static linking.
//!
//! Local symbols are copied. Visible symbols of one name are merged: a definition
//! overrides declarations, a strong one overrides weak ones, two strong ones are an
//! error; all types must be compatible. A symbol that is hidden in one file is hidden in
//! the output.

use std::collections::HashMap;

use super::LinkFault;
use super::agreement::Mismatch;
use super::input::{Input, SymbolType};
use super::maps;
use super::output::{Output, OutputSymbol};
use super::types::Types;
use crate::Error;
use crate::elf::{Binding, ElfFault, Symbol, SymbolKind, SymbolPlace};

/// Section of jump tables, whose symbols are local.
const JUMP_TABLES: &[u8] = b".jumptables";
/// Section of map definitions.
const MAPS: &[u8] = b".maps";

/// Visible symbols by name.
#[derive(Default)]
pub(super) struct Symbols {
    shared: HashMap<Vec<u8>, Shared>,
}

/// A visible symbol.
struct Shared {
    /// Symbol index in the output.
    symbol: usize,
    /// Section that contains it, or that an extern belongs to.
    section: usize,
    /// File that defines it, or declared it first.
    file: usize,
    is_extern: bool,
    is_weak: bool,
}

/// Place of an input symbol.
struct Place {
    /// Part of the input file.
    part: Option<usize>,
    /// Section of the output.
    section: usize,
}

impl Symbols {
    /// True if a symbol of this name is visible.
    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.shared.contains_key(name)
    }

    /// Section of a visible symbol.
    pub(super) fn section_of(&self, name: &[u8]) -> Option<usize> {
        self.shared.get(name).map(|shared| shared.section)
    }

    /// Appends the symbols of a file; returns their indices in the output, 0 for omitted
    /// ones.
    pub(super) fn append(
        &mut self,
        files: &[Input<'_>],
        input: &Input<'_>,
        output: &mut Output,
        types: &mut Types,
    ) -> Result<Vec<usize>, Error> {
        let mut resolver = Resolver {
            symbols: self,
            files,
            input,
            output,
            types,
        };
        let symbols = input.elf.symbols().iter().skip(1);
        let numbers = symbols.map(|symbol| {
            resolver
                .append(symbol)
                .map_err(|error| error.about(input.text(symbol)))
        });
        std::iter::once(Ok(0)).chain(numbers).collect()
    }
}

struct Resolver<'r, 'a> {
    symbols: &'r mut Symbols,
    /// Earlier files.
    files: &'r [Input<'a>],
    input: &'r Input<'a>,
    output: &'r mut Output,
    types: &'r mut Types,
}

impl Resolver<'_, '_> {
    fn append(&mut self, symbol: &Symbol) -> Result<usize, Error> {
        let name = self.input.elf.symbol_name(symbol);
        let name = name.ok_or(ElfFault::NoName)?.as_bytes();
        let mut place = Place {
            part: None,
            section: 0,
        };
        match symbol.place {
            SymbolPlace::Undefined if self.input.btf.is_none() => {
                return Err(LinkFault::ExternWithoutTypes.into());
            }
            SymbolPlace::Section(id) => {
                let index = id.0 as usize;
                let part = &self.input.parts[index];
                if part.is_left_out {
                    return Ok(0);
                }
                place = Place {
                    part: Some(index),
                    section: part.to,
                };
                let known = self.output.sections[part.to].symbol;
                if symbol.kind == SymbolKind::Section && known != 0 {
                    return Ok(known);
                }
                if part.name == JUMP_TABLES {
                    return Ok(self.add(symbol, name, &place));
                }
            }
            SymbolPlace::Undefined | SymbolPlace::Special(_) => {}
        }
        if symbol.binding == Binding::Local {
            return Ok(self.add(symbol, name, &place));
        }

        let ty = self.input.type_of(btf::Name::new(name))?;
        if symbol.place == SymbolPlace::Undefined {
            place = self.place_of_extern(ty)?;
        }
        match self.symbols.shared.contains_key(name) {
            true => self.resolve(symbol, name, &place, ty),
            false => Ok(self.add(symbol, name, &place)),
        }
    }

    /// An extern may belong to a DATASEC without a section, whose name states its
    /// definer; those of `.extern` are unspecified.
    fn place_of_extern(&self, ty: SymbolType) -> Result<Place, Error> {
        let section = ty.section.zip(self.input.btf.as_ref());
        let name = section.map(|(section, btf)| btf.at(section).name());
        let Some(name) = name.filter(|&name| name != ".extern") else {
            return Ok(Place {
                part: None,
                section: 0,
            });
        };
        let part = self.input.part_named(name.as_bytes());
        let part = part.ok_or_else(|| Error::from(LinkFault::ExternSection).in_section(name))?;
        Ok(Place {
            part: Some(part),
            section: self.input.parts[part].to,
        })
    }

    /// Adds a new symbol.
    fn add(&mut self, symbol: &Symbol, name: &[u8], place: &Place) -> usize {
        let number = self.output.symbols.len();
        let mut value = self.start(place).wrapping_add(symbol.value);
        if let (SymbolKind::Section, SymbolPlace::Section(_)) = (symbol.kind, symbol.place) {
            self.output.sections[place.section].symbol = number;
            value = 0;
        }
        let section = match (place.part, symbol.place) {
            (None, SymbolPlace::Special(special)) => special,
            _ => self.output.number(place.section) as u16,
        };
        let name_offset = self.output.names.add(name);
        self.output.symbols.push(OutputSymbol {
            name: name_offset,
            info: symbol.info,
            other: symbol.other,
            section,
            value,
            size: symbol.size,
        });
        if symbol.binding != Binding::Local {
            let shared = Shared {
                symbol: number,
                section: place.section,
                file: self.files.len(),
                is_extern: symbol.place == SymbolPlace::Undefined,
                is_weak: symbol.binding == Binding::Weak,
            };
            self.symbols.shared.entry(name.to_vec()).or_insert(shared);
        }
        number
    }

    /// Resolves a symbol against a known one of the same name.
    fn resolve(
        &mut self,
        symbol: &Symbol,
        name: &[u8],
        place: &Place,
        ty: SymbolType,
    ) -> Result<usize, Error> {
        let Some(known) = self.symbols.shared.get(name) else {
            return Ok(0);
        };
        let before = match self.files.get(known.file) {
            Some(file) => &file.name,
            None => &self.input.name,
        };
        let is_extern = symbol.place == SymbolPlace::Undefined;
        let is_weak = symbol.binding == Binding::Weak;
        if !is_extern && !known.is_extern && !known.is_weak && !is_weak {
            let before = before.clone();
            return Err(LinkFault::Duplicate { before }.into());
        }
        self.check(known, name, ty)
            .map_err(|what| LinkFault::Disagreement {
                before: before.clone(),
                what,
            })?;

        let start = self.start(place);
        let section = self.output.number(place.section) as u16;
        let Some(known) = self.symbols.shared.get_mut(name) else {
            return Ok(0);
        };
        let output = &mut self.output.symbols[known.symbol];
        if symbol.binding == Binding::Global {
            const GLOBAL: u8 = 1;
            output.info = GLOBAL << 4 | output.info & 0xf;
            known.is_weak = false;
        }
        let visibility = (symbol.other & 3).max(output.other & 3);
        output.other = output.other & !3 | visibility;
        // The known symbol remains, unless this is the definition of a declaration, or
        // strong and the known one weak.
        if is_extern || !known.is_extern && is_weak {
            return Ok(known.symbol);
        }
        output.info = output.info & 0xf0 | symbol.info & 0xf;
        output.section = section;
        output.value = start.wrapping_add(symbol.value);
        output.size = symbol.size;
        known.section = place.section;
        known.file = self.files.len();
        known.is_extern = false;
        if let Some(btf) = &self.input.btf {
            self.types.define(self.files, name, btf.at(ty.id));
        }
        Ok(known.symbol)
    }

    /// Checks the compatibility of both types.
    fn check(&self, known: &Shared, name: &[u8], ty: SymbolType) -> Result<(), Mismatch> {
        let btf = self.input.btf.as_ref().ok_or(Mismatch::Untyped)?;
        let now = btf.at(ty.id);
        let is_map = self.output.sections[known.section].name == MAPS;
        match (is_map, self.types.referred(self.files, name)) {
            (true, Some(before)) => maps::check(before, now),
            _ => self.types.check(self.files, name, now),
        }
    }

    /// Offset in bytes of the part of a symbol in its output section.
    fn start(&self, place: &Place) -> u64 {
        place.part.map_or(0, |part| self.input.parts[part].at)
    }
}
