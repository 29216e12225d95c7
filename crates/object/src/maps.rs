//! Maps of an object before creation: declared maps, global data and struct_ops.
//!
//! | file | maps |
//! |---|---|
//! | `legacy` | maps of legacy definitions (`SEC("maps")`), by the rules of a loader |
//! | `declared` | declared maps (`.maps`), each a structure type parsed by `definition` |
//! | `data` | global data: a map for each section of variables, `.kconfig` included |
//! | `struct_ops` | a map for each variable in `.struct_ops`; `kernel_ops` converts it to the kernel's type |
//! | `initial` | initial elements of maps of maps and of programs |
//! | `globals` | global variables by name, before loading |
//! | `creation` | map definitions for the kernel |
//!
//! Map indices are libbpf's: legacy maps in the order of their symbols, declared maps in the order of their types, data sections by
//! index, `.kconfig`, then struct_ops. Stated sizes take no memory until they are written
//! to.

mod creation;
mod data;
mod declared;
pub(crate) mod definition;
mod fault;
mod globals;
mod initial;
mod kernel_ops;
mod legacy;
mod struct_ops;

use std::collections::{BTreeMap, HashMap};

use btf::{Btf, TypeId};
use program::{Image, MapId, MapParams};
use spec::loader::LoaderRules;
use spec::maps::{MapFlags, MapKind};

use crate::elf::{Elf, SectionId};
use crate::error::Error;
use crate::externs::Externs;
use crate::programs::ProgramId;
use crate::sections::Sections;

pub use creation::LinkedMap;
pub(crate) use creation::{Creation, jump_table};
pub use data::{Data, DataKind};
pub use fault::{MapFault, SizeAttribute};
pub use globals::Global;
pub use kernel_ops::{Binding, Bindings};
pub use struct_ops::{StructOps, StructOpsFault};

/// Maps of an object, by index.
#[derive(Clone, Debug, Default)]
pub struct Maps<'a> {
    all: Vec<Map<'a>>,
    /// First map of each name.
    names: HashMap<String, MapId>,
    /// First map at each place of the file: section and offset.
    places: BTreeMap<(SectionId, u64), MapId>,
    /// Members of legacy definitions beside the parameters of the map.
    legacy: BTreeMap<MapId, legacy::Extra>,
    /// Section of declarations (`.maps`) and its DATASEC.
    declared: Option<(SectionId, TypeId)>,
    kconfig: Option<MapId>,
    arena: Option<MapId>,
}

/// A map before its creation.
#[derive(Clone, Debug)]
pub struct Map<'a> {
    name: String,
    kernel_name: String,
    place: Place,
    params: MapParams,
    /// Parameters of its inner maps.
    inner: Option<MapParams>,
    /// True if the map is created; programs that refer to a map that is not created fail
    /// at that instruction.
    pub autocreate: bool,
    /// Path at which the map is pinned.
    pub pin: Option<String>,
    /// Value of `pinning` in its definition.
    pinning: u32,
    /// Index of the network device of an offloaded map; 0 for none.
    pub device: u32,
    contents: Contents<'a>,
}

/// Place of a map in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    section: SectionId,
    /// Offset in bytes from the start of the section.
    offset: u64,
    /// Size in bytes.
    size: u64,
    /// Type of its variable; `void` for a whole section.
    ty: TypeId,
}

/// Initial contents of a map.
#[derive(Clone, Debug)]
pub enum Contents<'a> {
    /// Maps or programs by key; empty for most maps.
    Entries(BTreeMap<u32, InitialEntry>),
    /// Global variables.
    Data(Data<'a>),
    /// Global variables in an arena.
    Arena(Image<'a>),
    /// struct_ops.
    StructOps(StructOps<'a>),
}

/// Initial element of a map of maps or of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialEntry {
    /// Map.
    Map(MapId),
    /// Program.
    Program(ProgramId),
}

/// Inputs for collecting the maps of an object.
pub(crate) struct Source<'s, 'a> {
    pub(crate) elf: &'s Elf<'a>,
    pub(crate) sections: &'s Sections,
    pub(crate) btf: Option<&'s Btf<'a>>,
    pub(crate) externs: &'s Externs,
    /// Name of the object, a part of the names of data maps.
    pub(crate) name: &'s str,
    pub(crate) rules: &'s LoaderRules,
    /// True to ignore unknown attributes.
    pub(crate) relaxed: bool,
    /// Directory for pinned maps; `None` for `/sys/fs/bpf`.
    pub(crate) pin_root: Option<&'s str>,
}

impl<'a> Maps<'a> {
    /// Collects the maps of an object whose DATASECs are complete.
    pub(crate) fn collect(source: &Source<'_, 'a>) -> Result<Maps<'a>, Error> {
        let mut maps = Maps::default();
        legacy::collect(source, &mut maps)?;
        declared::collect(source, &mut maps)?;
        data::collect(source, &mut maps)?;
        struct_ops::collect(source, &mut maps)?;
        Ok(maps)
    }

    fn push(&mut self, map: Map<'a>) -> MapId {
        let id = MapId(self.all.len() as u32);
        self.names.entry(map.name.clone()).or_insert(id);
        let place = (map.place.section, map.place.offset);
        self.places.entry(place).or_insert(id);
        self.all.push(map);
        id
    }

    /// Every map with its index.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (MapId, &Map<'a>)> {
        let all = self.all.iter().enumerate();
        all.map(|(index, map)| (MapId(index as u32), map))
    }

    /// Map with this index.
    pub fn get(&self, id: MapId) -> Option<&Map<'a>> {
        self.all.get(id.0 as usize)
    }

    /// Mutable map with this index.
    pub fn get_mut(&mut self, id: MapId) -> Option<&mut Map<'a>> {
        self.all.get_mut(id.0 as usize)
    }

    /// First map with this name.
    pub fn named(&self, name: &str) -> Option<MapId> {
        self.names.get(name).copied()
    }

    /// True if the section has legacy definitions that count.
    pub(crate) fn has_legacy(&self, section: SectionId) -> bool {
        let mut legacy = self.legacy.keys().filter_map(|id| self.get(*id));
        legacy.any(|map| map.place.section == section)
    }

    /// Map declared at this place of the file.
    pub(crate) fn declared_at(&self, section: SectionId, offset: u64) -> Option<MapId> {
        let id = *self.places.get(&(section, offset))?;
        self.get(id).filter(|map| map.is_declared()).and(Some(id))
    }

    /// Map of the global variables of a section.
    pub(crate) fn data_of(&self, section: SectionId) -> Option<MapId> {
        let id = *self.places.get(&(section, 0))?;
        self.get(id).and_then(Map::data).and(Some(id))
    }

    /// Map whose place in the file contains `size` bytes at an offset.
    fn around(&self, section: SectionId, offset: u64, size: u64) -> Option<MapId> {
        let before = self.places.range(..=(section, offset)).next_back();
        let (&(its_section, start), &id) = before?;
        let end = start + self.get(id)?.place.size;
        let is_inside = offset.checked_add(size).is_some_and(|last| last <= end);
        (its_section == section && is_inside).then_some(id)
    }

    /// Map of kconfig externs.
    pub fn kconfig(&self) -> Option<MapId> {
        self.kconfig
    }

    /// Arena.
    pub fn arena(&self) -> Option<MapId> {
        self.arena
    }
}

impl<'a> Map<'a> {
    /// Name in the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name in the kernel.
    pub fn kernel_name(&self) -> &str {
        cut(&self.kernel_name, spec::maps::MAX_NAME)
    }

    /// Value of `pinning` in its definition: 0 for none, 1 by name, others of loaders.
    pub fn pinning(&self) -> u32 {
        self.pinning
    }

    /// Parameters of its creation.
    pub fn params(&self) -> &MapParams {
        &self.params
    }

    /// Parameters of its inner maps.
    pub fn inner(&self) -> Option<&MapParams> {
        self.inner.as_ref()
    }

    /// Mutable parameters of its inner maps.
    pub fn inner_mut(&mut self) -> Option<&mut MapParams> {
        self.inner.as_mut()
    }

    /// Sets the parameters of its inner maps. Error unless the map is a map of maps.
    pub fn set_inner(&mut self, inner: MapParams) -> Result<(), MapFault> {
        match self.params.kind() {
            Some(kind) if kind.is_map_of_maps() => self.inner = Some(inner),
            _ => return Err(MapFault::HoldsNoMaps),
        }
        Ok(())
    }

    /// Sets the map kind.
    pub fn set_kind(&mut self, kind: MapKind) {
        self.params.map_type = kind.number();
    }

    /// Sets the maximum number of entries: bytes of a ring buffer, pages of an arena. The
    /// size of a ring buffer is rounded up to one that the kernel accepts.
    pub fn set_max_entries(&mut self, entries: u32) {
        self.params.set_max_entries(entries);
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: MapFlags) {
        self.params.flags = flags;
    }

    /// Sets the size of a value in bytes of a map without initial contents of that size.
    pub fn set_value_size(&mut self, size: u32) {
        if self.is_declared() {
            self.params.value_size = size;
        }
    }

    /// Initial contents.
    pub fn contents(&self) -> &Contents<'a> {
        &self.contents
    }

    /// Global variables of a section, if the map has those.
    pub fn data(&self) -> Option<&Data<'a>> {
        match &self.contents {
            Contents::Data(data) => Some(data),
            _ => None,
        }
    }

    /// struct_ops, if the map is one.
    pub fn struct_ops(&self) -> Option<&StructOps<'a>> {
        match &self.contents {
            Contents::StructOps(table) => Some(table),
            _ => None,
        }
    }

    fn is_declared(&self) -> bool {
        matches!(self.contents, Contents::Entries(_) | Contents::Arena(_))
    }

    /// Initial bytes of its value; `None` for maps that are filled by element.
    pub fn image(&self) -> Option<&Image<'a>> {
        match &self.contents {
            Contents::Data(data) => Some(&data.image),
            Contents::Arena(image) => Some(image),
            Contents::StructOps(table) => Some(&table.image),
            Contents::Entries(_) => None,
        }
    }

    fn image_mut(&mut self) -> Option<&mut Image<'a>> {
        match &mut self.contents {
            Contents::Data(data) => Some(&mut data.image),
            Contents::Arena(image) => Some(image),
            Contents::StructOps(table) => Some(&mut table.image),
            Contents::Entries(_) => None,
        }
    }

    /// Sets the initial bytes of its value.
    pub fn set_image(&mut self, bytes: &[u8]) -> Result<(), MapFault> {
        let is_fixed =
            matches!(&self.contents, Contents::Data(data) if data.kind == DataKind::Config);
        let image = self.image_mut().filter(|_| !is_fixed);
        let image = image.ok_or(MapFault::NoContents)?;
        let (expected, given) = (u64::from(image.size()), bytes.len() as u64);
        if expected != given {
            return Err(MapFault::ContentsSize { expected, given });
        }
        image.write(0, bytes);
        Ok(())
    }
}

/// Prefix of a text of at most this many bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
