//! Map definitions: what `BPF_MAP_CREATE` is asked for, and what the map holds before a
//! program runs.

use std::sync::Arc;

use btf::TypeId;
use spec::maps::{MAX_NAME, MapFlags, MapKind};

use crate::image::Image;

/// Bytes of a page of memory.
pub const PAGE_SIZE: u32 = 4096;

/// Index of a map in [`Program::maps`](crate::Program::maps).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapId(pub u32);

/// Index of a program in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u32);

/// Parameters of `BPF_MAP_CREATE` that are numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapParams {
    /// Map type (`enum bpf_map_type`), which may be one that is not known.
    pub map_type: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Most entries; bytes of a ring buffer, pages of an arena.
    pub max_entries: u32,
    /// Flags.
    pub flags: MapFlags,
    /// `map_extra`: address of an arena, number of hash functions of a Bloom filter.
    pub extra: u64,
    /// NUMA node, if the flags say that there is one.
    pub numa_node: u32,
    /// BTF id of the key; `void` if none is stated.
    pub key_type: TypeId,
    /// BTF id of the value; `void` if none is stated.
    pub value_type: TypeId,
}

impl MapParams {
    /// Map kind, if the map type is known.
    pub fn kind(&self) -> Option<MapKind> {
        MapKind::from_number(self.map_type)
    }

    /// Sets the most entries. A ring buffer gets the next size that Linux takes: a
    /// power of two of pages.
    pub fn set_max_entries(&mut self, entries: u32) {
        self.max_entries = match self.kind() {
            Some(kind) if kind.is_ring() => ring_size(entries),
            _ => entries,
        };
    }
}

/// The smallest power of two of pages that holds so many bytes. 0 stays 0, and what is
/// too large stays as it is and is refused when the map is created.
fn ring_size(bytes: u32) -> u32 {
    match bytes.div_ceil(PAGE_SIZE).checked_next_power_of_two() {
        Some(pages) if bytes != 0 => pages.checked_mul(PAGE_SIZE).unwrap_or(bytes),
        _ => bytes,
    }
}

/// A map definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapDef {
    /// Name in the object.
    pub name: String,
    /// Name that the kernel gets: at most 15 bytes.
    pub kernel_name: String,
    /// Parameters of its creation.
    pub params: MapParams,
    /// True if the program's BTF describes its key and value.
    pub has_btf: bool,
    /// Type of the value in the kernel's BTF, for struct_ops.
    pub kernel_value: Option<KernelType>,
    /// Definition of the maps that it holds.
    pub inner: Option<Arc<MapDef>>,
    /// Index of the network device that it is for; 0 for none.
    pub ifindex: u32,
    /// Initial contents.
    pub contents: InitialContents,
}

/// A type of the kernel's BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelType {
    /// BTF id.
    pub id: TypeId,
    /// Module that has the id: 0 is vmlinux, n is entry n - 1 of the program's modules.
    pub module: u16,
}

/// Initial contents of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialContents {
    /// Maps or programs by key; programs are put in when all are loaded. Most maps hold
    /// none.
    Entries(Vec<(u32, Entry)>),
    /// The value at key 0: global variables.
    Value {
        /// Its bytes.
        image: Image<'static>,
        /// True if the map is frozen afterwards, so that nothing changes it.
        frozen: bool,
    },
    /// Memory of an arena.
    Arena {
        /// Its bytes.
        image: Image<'static>,
        /// Bytes from the start of the arena.
        offset: u64,
    },
    /// A struct_ops value at key 0.
    StructOps {
        /// Its bytes, function pointers zero.
        image: Image<'static>,
        /// Programs by byte offset in the value.
        programs: Vec<(u32, ProgramRef)>,
    },
    /// Targets of indirect jumps, by key: indices of instructions. The map is frozen
    /// afterwards.
    JumpTable(Vec<u32>),
}

/// What a map holds at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A map.
    Map(MapId),
    /// A program.
    Program(ProgramRef),
}

/// Another program of the same object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRef {
    /// Its index.
    pub id: ProgramId,
    /// Its name.
    pub name: String,
}

impl MapDef {
    /// A definition with this name and these parameters, empty and without BTF.
    pub fn new(name: impl Into<String>, params: MapParams) -> MapDef {
        let name = name.into();
        MapDef {
            kernel_name: kernel_name(&name).to_owned(),
            name,
            params,
            has_btf: false,
            kernel_value: None,
            inner: None,
            ifindex: 0,
            contents: InitialContents::Entries(Vec::new()),
        }
    }

    /// Map kind, if the map type is known.
    pub fn kind(&self) -> Option<MapKind> {
        self.params.kind()
    }

    /// Bytes of the value at key 0 that global variables start with.
    pub fn initial_value(&self) -> Option<&Image<'static>> {
        match &self.contents {
            InitialContents::Value { image, .. } => Some(image),
            InitialContents::Entries(_)
            | InitialContents::Arena { .. }
            | InitialContents::StructOps { .. }
            | InitialContents::JumpTable(_) => None,
        }
    }

    /// True if nothing, neither a program nor user space, changes its contents.
    pub fn is_frozen(&self) -> bool {
        match &self.contents {
            InitialContents::Value { frozen, .. } => *frozen,
            InitialContents::JumpTable(_) => true,
            InitialContents::Entries(_)
            | InitialContents::Arena { .. }
            | InitialContents::StructOps { .. } => false,
        }
    }
}

/// The part of a name that the kernel takes, cut at a character.
pub(crate) fn kernel_name(name: &str) -> &str {
    let mut end = MAX_NAME.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}
