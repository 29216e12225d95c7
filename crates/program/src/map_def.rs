//! Map definitions: the parameters of `BPF_MAP_CREATE` and the initial contents.

use std::sync::Arc;

use btf::TypeId;
use spec::maps::{MAX_NAME, MapFlags, MapKind};

use crate::image::Image;

/// Size of a memory page in bytes.
pub const PAGE_SIZE: u32 = 4096;

/// Index of a map in [`Program::maps`](crate::Program::maps).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapId(pub u32);

/// Index of a program in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u32);

/// Numeric parameters of `BPF_MAP_CREATE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapParams {
    /// Map type (`enum bpf_map_type`), possibly unknown.
    pub map_type: u32,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of entries; bytes of a ring buffer, pages of an arena.
    pub max_entries: u32,
    /// Flags.
    pub flags: MapFlags,
    /// `map_extra`: address of an arena, number of hash functions of a Bloom filter.
    pub extra: u64,
    /// NUMA node; used if BPF_F_NUMA_NODE is set.
    pub numa_node: u32,
    /// BTF id of the key; [`TypeId::VOID`] if none is stated.
    pub key_type: TypeId,
    /// BTF id of the value; [`TypeId::VOID`] if none is stated.
    pub value_type: TypeId,
}

impl MapParams {
    /// Map kind, if the map type is known.
    pub fn kind(&self) -> Option<MapKind> {
        MapKind::from_number(self.map_type)
    }

    /// Address in user space of an arena: that of its definition, or one that is always the same.
    /// In front of the first page is room, so that its 32-bit address is not that of a null
    /// pointer; an arena of 4 GiB has none.
    pub fn arena_start(&self) -> u64 {
        const START: u64 = 0x7f00_0000_0000;
        // Places whose lower half is like that of an address that Linux chooses, and not 0.
        const IN_FRONT: [u64; 2] = [0x3c01_0000, 1 << 16];
        let bytes = u64::from(self.max_entries) * u64::from(PAGE_SIZE);
        let fitting = IN_FRONT.iter().find(|at| **at + bytes <= 1 << 32);
        match self.extra {
            0 => START + fitting.unwrap_or(&0),
            given => given,
        }
    }

    /// Sets the maximum number of entries. The size of a ring buffer is rounded up to one
    /// that Linux accepts: a power of two of pages.
    pub fn set_max_entries(&mut self, entries: u32) {
        self.max_entries = match self.kind() {
            Some(kind) if kind.is_ring() => ring_size(entries),
            _ => entries,
        };
    }
}

/// Smallest power of two of pages that has at least `bytes` bytes. 0 and sizes whose
/// power of two overflows are unchanged; map creation refuses them.
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
    /// Name in the kernel: at most 15 bytes.
    pub kernel_name: String,
    /// Parameters of `BPF_MAP_CREATE`.
    pub params: MapParams,
    /// True if the program's BTF describes key and value.
    pub has_btf: bool,
    /// Type of the value in the kernel's BTF, for struct_ops.
    pub kernel_value: Option<KernelTypeId>,
    /// Definition of the inner maps of a map of maps.
    pub inner: Option<Arc<MapDef>>,
    /// Index of the network device of an offloaded map; 0 for none.
    pub ifindex: u32,
    /// Initial contents.
    pub contents: InitialContents,
}

/// A type of the kernel's BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTypeId {
    /// BTF id.
    pub id: TypeId,
    /// Module whose BTF contains the id: 0 is vmlinux, n is entry n - 1 of the program's
    /// modules.
    pub module: u16,
}

/// Initial contents of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialContents {
    /// Maps or programs by key, empty for most maps. Programs are inserted after all are
    /// loaded.
    Entries(Vec<(u32, MapEntry)>),
    /// The value at key 0: global variables.
    Value {
        /// Bytes of the value.
        image: Image<'static>,
        /// True if the map is frozen afterwards: neither programs nor user space write to
        /// it.
        frozen: bool,
    },
    /// Memory of an arena.
    Arena {
        /// Bytes of the memory.
        image: Image<'static>,
        /// Bytes from the start of the arena.
        offset: u64,
    },
    /// A struct_ops value at key 0.
    StructOps {
        /// Bytes of the value, function pointers zero.
        image: Image<'static>,
        /// Programs of the function pointers, by byte offset in the value.
        programs: Vec<(u32, ProgramRef)>,
    },
    /// Jump table: target instructions of indirect jumps, by key. The map is frozen
    /// afterwards.
    JumpTable(Vec<u32>),
}

impl InitialContents {
    /// Maps or programs by key; none in maps with other contents.
    pub fn entries(&self) -> &[(u32, MapEntry)] {
        match self {
            InitialContents::Entries(entries) => entries,
            InitialContents::Value { .. }
            | InitialContents::Arena { .. }
            | InitialContents::StructOps { .. }
            | InitialContents::JumpTable(_) => &[],
        }
    }

    /// Programs that the contents refer to.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &ProgramRef> {
        let members = match self {
            InitialContents::StructOps { programs, .. } => programs.as_slice(),
            InitialContents::Entries(_)
            | InitialContents::Value { .. }
            | InitialContents::Arena { .. }
            | InitialContents::JumpTable(_) => &[],
        };
        let entries = self.entries().iter().filter_map(|(_, entry)| match entry {
            MapEntry::Program(program) => Some(program),
            MapEntry::Map(_) => None,
        });
        entries.chain(members.iter().map(|(_, program)| program))
    }
}

impl Default for InitialContents {
    /// No entries.
    fn default() -> InitialContents {
        InitialContents::Entries(Vec::new())
    }
}

/// Element of a map of maps or of programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapEntry {
    /// A map.
    Map(MapId),
    /// A program.
    Program(ProgramRef),
}

/// Reference to a program of the same object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRef {
    /// Index of the program.
    pub id: ProgramId,
    /// Name of the program.
    pub name: String,
}

impl MapDef {
    /// Definition with this name and these parameters, empty and without BTF.
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
            contents: InitialContents::default(),
        }
    }

    /// Map kind, if the map type is known.
    pub fn kind(&self) -> Option<MapKind> {
        self.params.kind()
    }

    /// Initial value at key 0 of a map of global variables.
    pub fn initial_value(&self) -> Option<&Image<'static>> {
        match &self.contents {
            InitialContents::Value { image, .. } => Some(image),
            InitialContents::Entries(_)
            | InitialContents::Arena { .. }
            | InitialContents::StructOps { .. }
            | InitialContents::JumpTable(_) => None,
        }
    }

    /// True if the map is frozen: neither programs nor user space write to it.
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

/// Prefix of a name that fits into the kernel's, cut at a character boundary.
pub(crate) fn kernel_name(name: &str) -> &str {
    let mut end = MAX_NAME.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}
