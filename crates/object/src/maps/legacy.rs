//! Maps of legacy definitions (`struct bpf_map_def` in `SEC("maps")`), by the rules of a loader:
//! numbers in the section, one definition for each symbol. iproute2's (`struct bpf_elf_map`) have an
//! id, by which programs in sections `ID/KEY` and outer maps refer to them.

use std::collections::BTreeMap;
use std::ops::Range;

use btf::{Btf, Kind, Linkage, Shape};
use program::{MapId, MapParams};
use spec::loader::{DefinitionSize, LegacyMapRules, LegacyMembers, RestRule};
use spec::maps::{MapFlags, MapKind};

use super::declared::{PIN_BY_NAME, PIN_ROOT};
use super::{Contents, InitialEntry, Map, MapFault, Maps, Place, Source};
use crate::elf::{Binding, Section, Symbol, SymbolKind};
use crate::error::Error;
use crate::programs::ProgramDefs;
use btf::TypeId;

/// Numbers of the largest definition.
const MOST_MEMBERS: usize = 9;
/// Directory below which tc pins maps.
const TC_GLOBALS: &str = "/sys/fs/bpf/tc/globals";
/// Value of `pinning` of iproute2 for maps that all objects share.
const PIN_GLOBAL: u32 = 2;
/// Index in the outer map of an inner map that is in none.
const NO_INDEX: u32 = u32::MAX;

/// Members of a legacy definition beside the parameters of the map.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    /// Id within the object.
    id: u32,
    /// Id of the inner maps.
    inner_id: u32,
    /// Index in the outer map.
    inner_index: u32,
    /// True if further members are ignored.
    ignores_members: bool,
}

/// Adds the maps of legacy definitions, in the order of their symbols.
pub(super) fn collect<'a>(source: &Source<'_, 'a>, maps: &mut Maps<'a>) -> Result<(), Error> {
    let Some(rules) = &source.rules.legacy_maps else {
        return Ok(());
    };
    for id in &source.sections.legacy_maps {
        let section = source.elf.section(*id);
        let counts = |section: &&Section<'_>| {
            rules.in_prefixed_sections || section.name.as_bytes() == b"maps"
        };
        if let Some(section) = section.filter(counts) {
            read_section(source, rules, section, maps)
                .map_err(|error| error.in_section(section.name))?;
        }
    }
    match rules.members {
        LegacyMembers::Inner => maps.nest(),
        LegacyMembers::None | LegacyMembers::Pinning => Ok(()),
    }
}

fn read_section(
    source: &Source<'_, '_>,
    rules: &LegacyMapRules,
    section: &Section<'_>,
    maps: &mut Maps<'_>,
) -> Result<(), Error> {
    let symbols = source.elf.symbols().iter();
    let is_map = |symbol: &&Symbol| {
        symbol.section() == Some(section.id)
            && matches!(symbol.kind, SymbolKind::Variable | SymbolKind::None)
    };
    let symbols: Vec<&Symbol> = symbols.filter(is_map).collect();
    let count = symbols.len();
    if rules.size == DefinitionSize::Equal
        && (count == 0 || !section.size.is_multiple_of(count as u64))
    {
        let size = section.size;
        return Err(MapFault::LegacyCount { size, maps: count }.into());
    }
    for symbol in symbols {
        let name = source.elf.symbol_name(symbol).unwrap_or_default();
        let size = match rules.size {
            DefinitionSize::Equal => section.size / count as u64,
            DefinitionSize::OfSymbol => symbol.size,
        };
        let located = |fault: MapFault| Error::new(fault).about(name);
        if symbol.binding == Binding::Local {
            return Err(located(MapFault::NotGlobal(Linkage::STATIC)));
        }
        let end = symbol.value.saturating_add(size);
        let bytes = section.data()?.get(symbol.value as usize..end as usize);
        let bytes = bytes.ok_or_else(|| located(MapFault::BeyondSection))?;
        let words = members(rules, bytes, source.relaxed).map_err(located)?;
        let place = (section, symbol.value..end);
        let (map, mut extra) = read_map(source, rules, &name.to_string(), place, words);
        extra.ignores_members = rules.rest == RestRule::Ignored && bytes.len() > 7 * 4;
        let id = maps.push(map);
        maps.legacy.insert(id, extra);
    }
    Ok(())
}

/// The members of a definition; those that are missing are 0.
fn members(
    rules: &LegacyMapRules,
    bytes: &[u8],
    relaxed: bool,
) -> Result<[u32; MOST_MEMBERS], MapFault> {
    let count = match rules.members {
        LegacyMembers::None => 5,
        LegacyMembers::Pinning => 7,
        LegacyMembers::Inner => MOST_MEMBERS,
    };
    let known = count * 4;
    let is_short = bytes.len() < rules.least as usize;
    if is_short || rules.rest == RestRule::None && bytes.len() > known {
        return Err(MapFault::LegacySize {
            size: bytes.len() as u64,
            least: rules.least,
            most: (rules.rest == RestRule::None).then_some(known as u32),
        });
    }
    let (stated, rest) = bytes.split_at(bytes.len().min(known));
    if rules.rest == RestRule::Zero && !relaxed && rest.iter().any(|&byte| byte != 0) {
        return Err(MapFault::LegacyRest { known });
    }
    let mut words = [0; MOST_MEMBERS];
    for (word, bytes) in words.iter_mut().zip(stated.chunks(4)) {
        let mut number = [0; 4];
        number[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_le_bytes(number);
    }
    Ok(words)
}

fn read_map<'a>(
    source: &Source<'_, '_>,
    rules: &LegacyMapRules,
    name: &str,
    (section, place): (&Section<'_>, Range<u64>),
    words: [u32; MOST_MEMBERS],
) -> (Map<'a>, Extra) {
    let [
        kind,
        key,
        value,
        entries,
        flags,
        id,
        pinning,
        inner_id,
        inner_index,
    ] = words;
    let mut params = MapParams {
        map_type: kind,
        key_size: key,
        value_size: value,
        flags: MapFlags(flags),
        ..MapParams::default()
    };
    params.set_max_entries(entries);
    if rules.has_types
        && let Some((key, value)) = source.btf.and_then(|btf| types(btf, name, &params))
    {
        params.key_type = key;
        params.value_type = value;
    }
    let pin = match (rules.members, pinning) {
        (LegacyMembers::Pinning, PIN_BY_NAME) => {
            let root = source.pin_root.unwrap_or(PIN_ROOT);
            Some(format!("{root}/{name}"))
        }
        (LegacyMembers::Inner, PIN_GLOBAL) => Some(format!("{TC_GLOBALS}/{name}")),
        _ => None,
    };
    let map = Map {
        name: name.to_owned(),
        kernel_name: name.to_owned(),
        place: Place {
            section: section.id,
            offset: place.start,
            size: place.end - place.start,
            ty: TypeId::VOID,
        },
        params,
        inner: None,
        autocreate: true,
        pin,
        pinning,
        device: 0,
        contents: Contents::Entries(BTreeMap::new()),
    };
    let extra = Extra {
        id,
        inner_id,
        inner_index,
        ignores_members: false,
    };
    (map, extra)
}

/// Types of key and value: the first two members of a structure `____btf_map_NAME`, if their sizes
/// are those of the definition.
fn types(btf: &Btf<'_>, name: &str, params: &MapParams) -> Option<(TypeId, TypeId)> {
    let container = format!("____btf_map_{name}");
    let found = btf.find(Kind::Struct, &container)?;
    let Shape::Struct(structure) = found.shape() else {
        return None;
    };
    let mut members = structure.members();
    let (key, value) = (members.next()?.ty, members.next()?.ty);
    let is_equal =
        btf.size_of(key) == Some(params.key_size) && btf.size_of(value) == Some(params.value_size);
    is_equal.then_some((key, value))
}

impl Maps<'_> {
    /// True if members of a definition are ignored, which another loader may read.
    pub(crate) fn ignores_members(&self) -> bool {
        self.legacy.values().any(|extra| extra.ignores_members)
    }

    /// Gives maps of maps their inner maps, by id: the kind of those, and the elements.
    fn nest(&mut self) -> Result<(), Error> {
        let legacy: Vec<(MapId, Extra)> = self.legacy.iter().map(|(&id, &it)| (id, it)).collect();
        for &(outer, Extra { inner_id, .. }) in &legacy {
            let Some(map) = self.get(outer) else {
                continue;
            };
            if !map.params.kind().is_some_and(MapKind::is_map_of_maps) {
                continue;
            }
            let is_inner = |(id, extra): &&(MapId, Extra)| {
                *id != outer && inner_id != 0 && extra.id == inner_id
            };
            let inner: Vec<&(MapId, Extra)> = legacy.iter().filter(is_inner).collect();
            let Some(template) = inner.first().and_then(|(id, _)| self.get(*id)) else {
                let fault = MapFault::NoInnerMap { id: inner_id };
                return Err(Error::new(fault).about(&map.name));
            };
            let params = template.params;
            let held = inner
                .iter()
                .filter(|(_, extra)| extra.inner_id == 0 && extra.inner_index != NO_INDEX);
            let entries: BTreeMap<u32, InitialEntry> = held
                .map(|(id, extra)| (extra.inner_index, InitialEntry::Map(*id)))
                .collect();
            if let Some(map) = self.get_mut(outer) {
                map.inner = Some(params);
                map.contents = Contents::Entries(entries);
            }
        }
        Ok(())
    }

    /// Puts programs in sections `ID/KEY` into the program array with this id.
    pub(crate) fn add_tail_calls(&mut self, codes: &ProgramDefs<'_>) {
        for (program, code) in codes.programs() {
            let Some((id, key)) = code.tail_call_key() else {
                continue;
            };
            let mut legacy = self.legacy.iter();
            let is_meant = |map: &Map<'_>| map.params.kind() == Some(MapKind::ProgArray);
            let found =
                legacy.find(|(map, extra)| extra.id == id && self.get(**map).is_some_and(is_meant));
            let found = found.map(|(map, _)| *map);
            let map = found.and_then(|map| self.get_mut(map));
            if let Some(Contents::Entries(entries)) = map.map(|map| &mut map.contents) {
                entries.insert(key, InitialEntry::Program(program));
            }
        }
    }
}
