//! Global data: each section of variables becomes an array map with one value, the
//! section.
//!
//! User space may mmap the map if any of its variables is visible. Constants are
//! read-only and frozen before programs are loaded, so that the verifier knows their
//! values.

use std::cell::LazyCell;
use std::collections::HashMap;

use btf::{Btf, Linkage, Shape, TypeId};
use program::{Image, MapParams};
use spec::loader::DataRule;
use spec::maps::{MAX_NAME, MapFlags, MapKind};

use super::{Contents, Map, Maps, Place, Source, cut};
use crate::datasec::KCONFIG;
use crate::elf::{SectionId, Symbol};
use crate::error::Error;
use crate::sections::Role;

/// Global variables of a section.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    /// Kind of section.
    pub kind: DataKind,
    /// Name of the section.
    pub section: String,
    pub(super) image: Image<'a>,
}

/// Kind of a section of global variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// `.data`: initialised variables.
    Variables,
    /// `.rodata`: constants.
    Constants,
    /// `.bss`: zero-initialised variables.
    Zeros,
    /// `.kconfig`: values of the kernel's configuration.
    Config,
}

impl DataKind {
    /// True if the map is frozen after its initial contents are set.
    pub fn is_frozen(self) -> bool {
        matches!(self, DataKind::Constants | DataKind::Config)
    }
}

/// Adds a map for each section of variables, and one for `.kconfig`.
pub(super) fn collect<'a>(source: &Source<'_, 'a>, maps: &mut Maps<'a>) -> Result<(), Error> {
    let types = LazyCell::new(|| described(source.btf));
    for section in source.elf.sections().iter().skip(1) {
        let kind = match source.sections.role(section.id) {
            Role::Data => DataKind::Variables,
            Role::Constants => DataKind::Constants,
            Role::Zeros => DataKind::Zeros,
            Role::Other | Role::Code | Role::StructOps => continue,
        };
        let is_made = section.size != 0
            && (source.rules.data != DataRule::PlainUsed || is_used(source, section.id));
        if is_made {
            let image = Image::new(section.data()?, section.size as u32);
            let name = section.name.to_string_lossy();
            let value = types.get(section.name.as_bytes()).copied();
            maps.push(make(source, kind, &name, (section.id, value), image));
        }
    }
    if let Some(size) = source.externs.config_size() {
        let place = source.elf.symbol_table();
        let value = types.get(KCONFIG.as_bytes()).copied();
        let zeros = Image::zeros(size);
        let map = make(source, DataKind::Config, KCONFIG, (place, value), zeros);
        maps.kconfig = Some(maps.push(map));
    }
    Ok(())
}

fn make<'a>(
    source: &Source<'_, '_>,
    kind: DataKind,
    section: &str,
    (place, value): (SectionId, Option<TypeId>),
    image: Image<'a>,
) -> Map<'a> {
    let value = value.unwrap_or_default();
    let mut flags = MapFlags::default();
    if kind.is_frozen() {
        flags = flags.with(MapFlags::RDONLY_PROG);
    }
    let is_mapped = match source.rules.data {
        DataRule::Prefixed => source.btf.is_some_and(|btf| is_seen(btf, value)),
        DataRule::PlainUsed => kind != DataKind::Config,
        DataRule::PrefixedMapped => true,
        DataRule::Plain => false,
    };
    if is_mapped {
        flags = flags.with(MapFlags::MMAPABLE);
    }
    let prefix = match source.rules.data {
        DataRule::Prefixed | DataRule::PrefixedMapped => source.name,
        DataRule::Plain | DataRule::PlainUsed => "",
    };
    let kernel_name = kernel_name(prefix, section);
    // Custom section names are kept; standard ones get the object's name as prefix.
    let is_own = matches!(kind, DataKind::Variables | DataKind::Constants)
        && !matches!(section, ".data" | ".rodata");
    Map {
        name: if is_own {
            section.to_owned()
        } else {
            kernel_name.clone()
        },
        kernel_name,
        place: Place {
            section: place,
            offset: 0,
            size: image.size().into(),
            ty: TypeId::VOID,
        },
        params: MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: image.size(),
            max_entries: 1,
            flags,
            value_type: value,
            ..MapParams::default()
        },
        inner: None,
        autocreate: true,
        pin: None,
        pinning: 0,
        device: 0,
        contents: Contents::Data(Data {
            kind,
            section: section.to_owned(),
            image,
        }),
    }
}

/// True if a section has a named symbol or a relocation that refers to it.
fn is_used(source: &Source<'_, '_>, section: SectionId) -> bool {
    let elf = source.elf;
    let is_named = |symbol: &&Symbol| elf.symbol_name(symbol).is_some_and(|name| !name.is_empty());
    let mut symbols = elf.symbols().iter().filter(is_named);
    let mut tables = source
        .sections
        .relocations
        .iter()
        .filter_map(|id| elf.section(*id));
    symbols.any(|symbol| symbol.section() == Some(section))
        || tables.any(|table| {
            let references = elf.references(table).into_iter().flatten();
            let mut places = references.flatten().map(|(_, symbol)| symbol.section());
            places.any(|place| place == Some(section))
        })
}

/// First DATASEC of each name.
fn described<'b>(btf: Option<&'b Btf<'_>>) -> HashMap<&'b [u8], TypeId> {
    let mut types = HashMap::new();
    for ty in btf.into_iter().flat_map(|btf| btf.types()) {
        let name = ty.name().as_bytes();
        if name.starts_with(b".") {
            types.entry(name).or_insert(ty.id());
        }
    }
    types
}

/// True if any variable of a section is visible outside its file.
fn is_seen(btf: &Btf<'_>, section: TypeId) -> bool {
    let Shape::Datasec(section) = btf.at(section).shape() else {
        return false;
    };
    section
        .vars()
        .any(|placed| match btf.at(placed.var).shape() {
            Shape::Var(var) => var.linkage != Linkage::STATIC,
            _ => false,
        })
}

/// Name in the kernel: prefix of the object's name, then the section's, of which at least
/// seven bytes are kept. A section with two dots in its name gets no prefix. Characters
/// that the kernel refuses become underscores.
fn kernel_name(object: &str, section: &str) -> String {
    let kept = section.len().clamp(7, MAX_NAME);
    let prefix = match section.get(1..).is_some_and(|rest| rest.contains('.')) {
        true => "",
        false => cut(object, MAX_NAME - kept),
    };
    let name = prefix.bytes().chain(section.bytes().take(kept));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    name.map(|byte| if allowed(byte) { byte.into() } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_names_are_truncated_as_by_libbpf() {
        assert_eq!(kernel_name("my_object_name", ".rodata"), "my_objec.rodata");
        assert_eq!(kernel_name("my_object_name", ".bss"), "my_objec.bss");
        assert_eq!(kernel_name("my_object_name", ".kconfig"), "my_obje.kconfig");
        assert_eq!(kernel_name("my", ".data"), "my.data");
        assert_eq!(kernel_name("my", ".rodata.abracadabra"), ".rodata.abracad");
        assert_eq!(kernel_name("my-object", ".bss"), "my_objec.bss");
        assert_eq!(kernel_name("grüße", ".data"), "gr____e.data");
    }
}
