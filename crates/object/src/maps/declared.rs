//! Declared maps (`.maps`): variables whose structure type is the declaration.

use std::collections::BTreeMap;

use btf::{Btf, Linkage, Shape, VarSecinfo};
use program::{Image, PAGE_SIZE};
use spec::maps::MapKind;

use super::{Contents, Map, MapFault, Maps, Place, Source, definition};
use crate::elf::Section;
use crate::error::Error;

/// Value of `pinning` for maps that are pinned under their name.
pub(super) const PIN_BY_NAME: u32 = 1;
/// Default directory of pinned maps.
pub(super) const PIN_ROOT: &str = "/sys/fs/bpf";

/// Adds the declared maps.
pub(super) fn collect<'a>(source: &Source<'_, 'a>, maps: &mut Maps<'a>) -> Result<(), Error> {
    // Without declarations, a missing arena is an error only when an instruction refers
    // to a variable in it.
    let section = source.sections.maps.and_then(|id| source.elf.section(id));
    let Some(section) = section else {
        return Ok(());
    };
    read_section(source, section, maps).map_err(|error| error.in_section(section.name))?;
    find_arena(source, maps)
}

fn read_section(
    source: &Source<'_, '_>,
    section: &Section<'_>,
    maps: &mut Maps<'_>,
) -> Result<(), Error> {
    let btf = source.btf.ok_or(MapFault::NoTypes)?;
    let described = btf.datasecs().find(|ty| ty.name() == ".maps");
    let described = described.ok_or(MapFault::NotDescribed)?;
    maps.declared = Some((section.id, described.id()));
    let Shape::Datasec(listed) = described.shape() else {
        return Err(MapFault::NotDescribed.into());
    };
    for (index, placed) in listed.vars().enumerate() {
        let map = read_map(source, btf, section, index, placed)
            .map_err(|fault| Error::new(fault).about(btf.at(placed.var).name()))?;
        maps.push(map);
    }
    Ok(())
}

fn read_map<'a>(
    source: &Source<'_, '_>,
    btf: &Btf<'_>,
    section: &Section<'_>,
    index: usize,
    placed: VarSecinfo,
) -> Result<Map<'a>, MapFault> {
    let ty = btf.at(placed.var);
    if ty.name().is_empty() {
        return Err(MapFault::NoName { index });
    }
    if u64::from(placed.offset) + u64::from(placed.size) > section.size {
        return Err(MapFault::BeyondSection);
    }
    let Shape::Var(var) = ty.shape() else {
        return Err(MapFault::NotVariable(ty.kind()));
    };
    if var.linkage != Linkage::GLOBAL {
        return Err(MapFault::NotGlobal(var.linkage));
    }
    if !source.rules.has_initialised_maps {
        let data = section.data().unwrap_or_default();
        let (from, size) = (placed.offset as usize, placed.size as usize);
        let mut bytes = data.iter().skip(from).take(size);
        if bytes.any(|&byte| byte != 0) {
            return Err(MapFault::Initialised);
        }
    }
    let structure = btf.at(btf.skip_modifiers(var.ty).unwrap_or_default());
    let Shape::Struct(structure) = structure.shape() else {
        return Err(MapFault::NotStructure(structure.kind()));
    };
    if structure.size > placed.size {
        return Err(MapFault::LargerThanVariable);
    }
    let mut said = definition::read(btf, structure, (source.rules, source.relaxed))?;
    let name = ty.name().to_string();
    for params in [Some(&mut said.params), said.inner.as_mut()] {
        let is_rounded = |kind| source.rules.rounded_kinds.contains(&kind);
        if let Some(params) = params
            && params.kind().is_some_and(is_rounded)
        {
            params.set_max_entries(params.max_entries);
        }
    }
    let pin_root = source.pin_root.unwrap_or(PIN_ROOT);
    Ok(Map {
        pin: (said.pinning == PIN_BY_NAME).then(|| format!("{pin_root}/{name}")),
        pinning: said.pinning,
        kernel_name: name.clone(),
        name,
        place: Place {
            section: section.id,
            offset: placed.offset.into(),
            size: placed.size.into(),
            ty: placed.var,
        },
        params: said.params,
        inner: said.inner,
        autocreate: true,
        device: 0,
        contents: Contents::Entries(BTreeMap::new()),
    })
}

/// Finds the arena and gives it the variables of its section.
fn find_arena<'a>(source: &Source<'_, 'a>, maps: &mut Maps<'a>) -> Result<(), Error> {
    let variables = source.sections.arena.and_then(|id| source.elf.section(id));
    let is_arena = |map: &Map<'_>| map.params.kind() == Some(MapKind::Arena);
    let arena = maps.iter().find(|(_, map)| is_arena(map));
    maps.arena = arena.map(|(id, _)| id);
    let arena = maps.arena.and_then(|id| maps.get_mut(id));
    let Some(arena) = arena else {
        return match variables {
            Some(section) => Err(Error::new(MapFault::NoArena).in_section(section.name)),
            None => Ok(()),
        };
    };
    if let Some(section) = variables {
        let data = section.data()?;
        let size = u64::from(PAGE_SIZE) * u64::from(arena.params.max_entries);
        let len = data.len() as u64;
        if len.next_multiple_of(PAGE_SIZE.into()) > size {
            let fault = MapFault::ArenaTooSmall {
                size,
                variables: len,
            };
            return Err(Error::new(fault).about(&arena.name));
        }
        arena.contents = Contents::Arena(Image::new(data, len as u32));
    }
    let first = arena.name.clone();
    let others = &maps.all[maps.arena.map_or(0, |id| id.0 as usize + 1)..];
    if let Some(second) = others.iter().find(|map| is_arena(map)) {
        return Err(Error::new(MapFault::SecondArena { first }).about(&second.name));
    }
    Ok(())
}
