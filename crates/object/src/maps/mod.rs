//! Maps before they exist: what an object declares, what its variables live in, and
//! what its tables of functions become.
//!
//! | file | maps |
//! |---|---|
//! | `declared` | those in `.maps`, each a structure type read by `definition` |
//! | `data` | one for each section of variables, `.kconfig` included |
//! | `struct_ops` | one for each variable in `.struct_ops`; `kernel_ops` fits it to a kernel |
//! | `initial` | maps and programs that other maps hold from the start |
//! | `globals` | variables by name, before anything runs |
//! | `creation` | what the kernel is asked for at last |
//!
//! They are numbered as libbpf numbers them: declared maps in the order of their
//! types, sections by number, `.kconfig`, then tables of functions. Sizes that a file
//! states are believed, but take no memory before somebody writes to them.

mod creation;
mod data;
mod declared;
pub(crate) mod definition;
mod fault;
mod globals;
mod initial;
mod kernel_ops;
mod struct_ops;

use std::collections::{BTreeMap, HashMap};

use btf::{Btf, TypeId};
use program::{Image, MapId, MapParams};
use spec::maps::{MapFlags, MapKind};

use crate::elf::{Elf, SectionId};
use crate::error::Error;
use crate::externs::Externs;
use crate::programs::ProgramId;
use crate::sections::Sections;

pub use creation::LinkedMap;
pub(crate) use creation::{Creation, jump_table};
pub use data::{Data, DataKind};
pub use fault::{Amount, MapFault};
pub use globals::Global;
pub use kernel_ops::{Binding, Bindings};
pub use struct_ops::{StructOps, StructOpsFault};

/// The maps of an object, by number.
#[derive(Clone, Debug, Default)]
pub struct Maps<'a> {
    all: Vec<Map<'a>>,
    /// The first map of each name.
    names: HashMap<String, MapId>,
    /// The first map at each place of the file: section and offset.
    places: BTreeMap<(SectionId, u64), MapId>,
    /// The section of declarations, and the type that describes it.
    declared: Option<(SectionId, TypeId)>,
    kconfig: Option<MapId>,
    arena: Option<MapId>,
}

/// A map before it exists.
#[derive(Clone, Debug)]
pub struct Map<'a> {
    name: String,
    kernel_name: String,
    place: Place,
    params: MapParams,
    /// The maps that it holds are like this.
    inner: Option<MapParams>,
    /// Is it to be created? What refers to one that is not can't run.
    pub autocreate: bool,
    /// Where it is pinned, as a path.
    pub pin: Option<String>,
    /// The network device that it is for, by number; 0 for none.
    pub device: u32,
    contents: Contents<'a>,
}

/// Where a map stands in the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    section: SectionId,
    /// Bytes from the start of the section.
    offset: u64,
    /// Bytes.
    size: u64,
    /// The type of its variable; `void` for a whole section.
    ty: TypeId,
}

/// What a map holds from the start.
#[derive(Clone, Debug)]
pub enum Contents<'a> {
    /// Maps or programs, by key; most maps hold none.
    Entries(BTreeMap<u32, InitialEntry>),
    /// Variables.
    Data(Data<'a>),
    /// Variables in an arena.
    Arena(Image<'a>),
    /// A table of functions.
    StructOps(StructOps<'a>),
}

/// What a map holds at a key from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialEntry {
    /// A map.
    Map(MapId),
    /// A program.
    Program(ProgramId),
}

/// What finding maps needs to know of an object.
pub(crate) struct Source<'s, 'a> {
    pub(crate) elf: &'s Elf<'a>,
    pub(crate) sections: &'s Sections,
    pub(crate) btf: Option<&'s Btf<'a>>,
    pub(crate) externs: &'s Externs,
    /// The object's name, which goes into those of some maps.
    pub(crate) name: &'s str,
    /// Pass over attributes that nobody knows.
    pub(crate) relaxed: bool,
    /// Where maps that ask for it are pinned; `None` for `/sys/fs/bpf`.
    pub(crate) pin_root: Option<&'s str>,
}

impl<'a> Maps<'a> {
    /// Finds the maps of an object. Its types have their sizes and places already.
    pub(crate) fn collect(source: &Source<'_, 'a>) -> Result<Maps<'a>, Error> {
        let mut maps = Maps::default();
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

    /// Every map with its number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (MapId, &Map<'a>)> {
        let all = self.all.iter().enumerate();
        all.map(|(index, map)| (MapId(index as u32), map))
    }

    /// The map of that number.
    pub fn get(&self, id: MapId) -> Option<&Map<'a>> {
        self.all.get(id.0 as usize)
    }

    /// The map of that number, to be changed.
    pub fn get_mut(&mut self, id: MapId) -> Option<&mut Map<'a>> {
        self.all.get_mut(id.0 as usize)
    }

    /// The first map of that name.
    pub fn named(&self, name: &str) -> Option<MapId> {
        self.names.get(name).copied()
    }

    /// The map that is declared at a place of the file.
    pub(crate) fn declared_at(&self, section: SectionId, offset: u64) -> Option<MapId> {
        let id = *self.places.get(&(section, offset))?;
        self.get(id).filter(|map| map.is_declared()).and(Some(id))
    }

    /// The map of the variables of a section.
    pub(crate) fn data_of(&self, section: SectionId) -> Option<MapId> {
        let id = *self.places.get(&(section, 0))?;
        self.get(id).and_then(Map::data).and(Some(id))
    }

    /// The map in whose part of the file so many bytes from an offset on are.
    fn around(&self, section: SectionId, offset: u64, size: u64) -> Option<MapId> {
        let before = self.places.range(..=(section, offset)).next_back();
        let (&(its_section, start), &id) = before?;
        let end = start + self.get(id)?.place.size;
        let is_inside = offset.checked_add(size).is_some_and(|last| last <= end);
        (its_section == section && is_inside).then_some(id)
    }

    /// The map of configuration values.
    pub fn kconfig(&self) -> Option<MapId> {
        self.kconfig
    }

    /// The arena.
    pub fn arena(&self) -> Option<MapId> {
        self.arena
    }
}

impl<'a> Map<'a> {
    /// Its name, as users know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name, as a kernel knows it.
    pub fn kernel_name(&self) -> &str {
        cut(&self.kernel_name, spec::maps::MAX_NAME)
    }

    /// What it is created with.
    pub fn params(&self) -> &MapParams {
        &self.params
    }

    /// What the maps that it holds are created with.
    pub fn inner(&self) -> Option<&MapParams> {
        self.inner.as_ref()
    }

    /// The same, to be changed.
    pub fn inner_mut(&mut self) -> Option<&mut MapParams> {
        self.inner.as_mut()
    }

    /// Says what the maps that it holds are created with.
    pub fn set_inner(&mut self, inner: MapParams) -> Result<(), MapFault> {
        match self.params.kind() {
            Some(kind) if kind.holds_maps() => self.inner = Some(inner),
            _ => return Err(MapFault::HoldsNoMaps),
        }
        Ok(())
    }

    /// Makes it one of another kind.
    pub fn set_kind(&mut self, kind: MapKind) {
        self.params.map_type = kind.number();
    }

    /// Sets how many entries it has, a ring buffer's size in bytes, an arena's in
    /// pages. A ring buffer gets the next size that kernels take.
    pub fn set_max_entries(&mut self, entries: u32) {
        self.params.set_max_entries(entries);
    }

    /// Sets the flags of its creation.
    pub fn set_flags(&mut self, flags: MapFlags) {
        self.params.flags = flags;
    }

    /// Sets what only some kinds have ([`MapParams::extra`]).
    pub fn set_extra(&mut self, extra: u64) {
        self.params.extra = extra;
    }

    /// Sets the NUMA node that its memory is taken from.
    pub fn set_numa_node(&mut self, node: u32) {
        self.params.numa_node = node;
    }

    /// Sets how many bytes a key has.
    pub fn set_key_size(&mut self, size: u32) {
        self.params.key_size = size;
    }

    /// What it holds from the start.
    pub fn contents(&self) -> &Contents<'a> {
        &self.contents
    }

    /// The variables of a section, if it holds those.
    pub fn data(&self) -> Option<&Data<'a>> {
        match &self.contents {
            Contents::Data(data) => Some(data),
            _ => None,
        }
    }

    /// The table of functions, if it is one.
    pub fn struct_ops(&self) -> Option<&StructOps<'a>> {
        match &self.contents {
            Contents::StructOps(table) => Some(table),
            _ => None,
        }
    }

    fn is_declared(&self) -> bool {
        matches!(self.contents, Contents::Entries(_) | Contents::Arena(_))
    }

    /// The bytes that it holds from the start; `None` for maps whose entries are put
    /// in one by one.
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

    /// Sets all bytes that it holds from the start.
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

/// The start of a text, at most so many bytes of it.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
