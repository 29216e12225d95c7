//! Initial elements of declared maps: `values` of a declaration lists maps or programs,
//! each by a relocation.

use btf::{Btf, Shape, TypeId};
use program::MapId;
use spec::maps::MapKind;

use super::{Contents, InitialEntry, MapFault, Maps};
use crate::elf::{Elf, Relocation, Section, Symbol};
use crate::error::Error;
use crate::programs::ProgramDefs;

/// Size of a pointer in an object in bytes.
const POINTER: u64 = 8;

impl Maps<'_> {
    /// Adds the elements of the relocations of `.maps`.
    pub(crate) fn add_initial_values(
        &mut self,
        elf: &Elf<'_>,
        btf: Option<&Btf<'_>>,
        codes: &ProgramDefs<'_>,
        relocations: &Section<'_>,
    ) -> Result<(), Error> {
        let btf = btf.ok_or(MapFault::NoTypes)?;
        for reference in elf.references(relocations)? {
            let (relocation, symbol) = reference?;
            let offset = relocation.offset;
            let map = self
                .around(relocations.target, offset, POINTER)
                .ok_or(MapFault::ValueNowhere { offset })?;
            self.add_value(elf, btf, codes, map, relocation, symbol)
                .map_err(|fault| match self.get(map) {
                    Some(map) => Error::new(fault).about(map.name()),
                    None => Error::new(fault),
                })?;
        }
        Ok(())
    }

    fn add_value(
        &mut self,
        elf: &Elf<'_>,
        btf: &Btf<'_>,
        codes: &ProgramDefs<'_>,
        id: MapId,
        relocation: Relocation,
        symbol: &Symbol,
    ) -> Result<(), MapFault> {
        let name = elf.symbol_name(symbol).unwrap_or_default();
        let map = self.get(id).ok_or(MapFault::NoSuchMap)?;
        let entry = match map.params.kind() {
            Some(kind) if kind.is_map_of_maps() => {
                if symbol.section().is_none()
                    || symbol.section() != self.declared.map(|(section, _)| section)
                {
                    return Err(MapFault::NotDeclared(name.to_string()));
                }
                if kind == MapKind::HashOfMaps && map.params.key_size != 4 {
                    return Err(MapFault::KeysNotNumbers);
                }
                let held = self.named(&name.to_string_lossy());
                InitialEntry::Map(held.ok_or_else(|| MapFault::NotMap(name.to_string()))?)
            }
            Some(MapKind::ProgArray) => {
                let held = codes.program_named(name.as_bytes());
                let held = held.ok_or_else(|| MapFault::NotProgram(name.to_string()))?;
                let is_entry = codes.get(held).is_some_and(|code| {
                    symbol.section() == Some(code.section) && symbol.value == code.start as u64 * 8
                });
                if !is_entry {
                    return Err(MapFault::NotEntry(name.to_string()));
                }
                InitialEntry::Program(held)
            }
            _ => return Err(MapFault::ValueMisplaced),
        };
        let values = values_offset(btf, map.place.ty).ok_or(MapFault::ValueMisplaced)?;
        let from = (relocation.offset - map.place.offset).checked_sub(values);
        let from = from.filter(|from| from.is_multiple_of(POINTER));
        let key = from.ok_or(MapFault::ValueMisplaced)? / POINTER;
        if let Some(Contents::Entries(entries)) = self.get_mut(id).map(|map| &mut map.contents) {
            entries.insert(key as u32, entry);
        }
        Ok(())
    }
}

/// Offset in bytes of `values` in a declaration, of which it must be the last member.
fn values_offset(btf: &Btf<'_>, variable: TypeId) -> Option<u64> {
    let Shape::Var(var) = btf.at(variable).shape() else {
        return None;
    };
    let Shape::Struct(structure) = btf.at(btf.skip_modifiers(var.ty)?).shape() else {
        return None;
    };
    let last = structure.members().next_back()?;
    let is_values = btf.string(last.name) == "values";
    is_values.then_some(u64::from(last.bit_offset / 8))
}
