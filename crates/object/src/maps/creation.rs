//! Map definitions for the kernel, after libbpf's adjustments: names cut to the maximum,
//! BTF omitted for kinds that do not support it, sizes that depend on the machine, and
//! initial contents.

use std::sync::Arc;

use btf::TypeId;
use program::{
    Image, InitialContents, KernelTypeId, MapDef, MapEntry, MapParams, PAGE_SIZE, ProgramId,
    ProgramRef,
};
use spec::loader::LoaderRules;
use spec::maps::{MapFlags, MapKind};

use super::kernel_ops::{Bindings, Table};
use super::{Contents, InitialEntry, Map, Maps};
use crate::externs::ResolvedExterns;
use crate::programs::ProgramDefs;
use crate::relocate::data::JumpTable;
use spec::Kernel;

/// A map of a linked object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedMap {
    /// Definition (`BPF_MAP_CREATE`) with initial contents. BTF ids are of the object's
    /// BTF.
    pub def: Arc<MapDef>,
    /// True if the map is created.
    pub autocreate: bool,
    /// Path at which the map is pinned.
    pub pin: Option<String>,
}

/// libbpf's name of the map of a jump table.
const JUMP_TABLE: &str = ".jumptables";
/// Size of a value of an instruction array in bytes (`struct bpf_insn_array_value`).
const JUMP_TARGET: u32 = 16;

/// Map of a jump table.
pub(crate) fn jump_table(table: JumpTable) -> LinkedMap {
    let params = MapParams {
        map_type: MapKind::InsnArray.number(),
        key_size: 4,
        value_size: JUMP_TARGET,
        max_entries: table.places.len() as u32,
        ..MapParams::default()
    };
    let mut def = MapDef::new(JUMP_TABLE, params);
    def.contents = InitialContents::JumpTable(table.places);
    LinkedMap {
        def: Arc::new(def),
        autocreate: true,
        pin: None,
    }
}

/// Inputs of map definitions.
pub(crate) struct Creation<'o, 'a> {
    pub(crate) maps: &'o Maps<'a>,
    pub(crate) codes: &'o ProgramDefs<'a>,
    /// Bytes of the file.
    pub(crate) file: &'a [u8],
    /// True if the object has BTF.
    pub(crate) has_btf: bool,
    pub(crate) kernel: &'o Kernel,
    pub(crate) rules: &'o LoaderRules,
    pub(crate) externs: &'o ResolvedExterns,
    pub(crate) bindings: &'o Bindings,
}

impl Creation<'_, '_> {
    /// All maps, by index.
    pub(crate) fn maps(&self) -> Vec<LinkedMap> {
        let images = OwnedImages::new(self.maps, self.file);
        let all = self.maps.iter();
        all.map(|(id, map)| {
            let table = self.bindings.tables.get(&id);
            let contents = match &map.contents {
                Contents::Data(data) if Some(id) == self.maps.kconfig => InitialContents::Value {
                    image: self.externs.config.clone(),
                    frozen: data.kind.is_frozen(),
                },
                contents => self.contents(contents, table, &images),
            };
            LinkedMap {
                def: Arc::new(map.definition(
                    self.has_btf,
                    (self.kernel, self.rules),
                    table,
                    contents,
                )),
                autocreate: map.autocreate,
                pin: map.pin.clone(),
            }
        })
        .collect()
    }

    fn contents(
        &self,
        contents: &Contents<'_>,
        table: Option<&Table>,
        images: &OwnedImages<'_>,
    ) -> InitialContents {
        match (contents, table) {
            (Contents::Entries(entries), _) => {
                let entries = entries.iter().map(|(&key, &entry)| {
                    let entry = match entry {
                        InitialEntry::Map(map) => MapEntry::Map(map),
                        InitialEntry::Program(program) => MapEntry::Program(self.program(program)),
                    };
                    (key, entry)
                });
                InitialContents::Entries(entries.collect())
            }
            (Contents::Data(data), _) => InitialContents::Value {
                image: images.own(&data.image),
                frozen: data.kind.is_frozen(),
            },
            (Contents::Arena(image), _) => InitialContents::Arena {
                image: images.own(image),
                offset: self.maps.arena_offset(self.kernel),
            },
            (Contents::StructOps(_), Some(table)) => InitialContents::StructOps {
                image: table.image.clone(),
                programs: table
                    .programs
                    .iter()
                    .map(|(&at, &of)| (at, self.program(of)))
                    .collect(),
            },
            // A struct_ops map that is not created is not bound to a kernel.
            (Contents::StructOps(table), None) => InitialContents::StructOps {
                image: images.own(&table.image),
                programs: Vec::new(),
            },
        }
    }

    fn program(&self, id: ProgramId) -> ProgramRef {
        let code = self.codes.get(id);
        let name = code.map(|code| code.name.to_string()).unwrap_or_default();
        ProgramRef { id, name }
    }
}

/// Owned copies of initial contents. Their total memory is at most the size of the file:
/// if sections share so many bytes that copies would exceed it, all are ranges of one
/// copy of the file.
struct OwnedImages<'a> {
    file: &'a [u8],
    shared: Option<Arc<[u8]>>,
}

impl<'a> OwnedImages<'a> {
    fn new(maps: &Maps<'a>, file: &'a [u8]) -> OwnedImages<'a> {
        let images = maps.iter().filter_map(|(_, map)| map.image()?.borrowed());
        let total = images.fold(0usize, |total, bytes| total.saturating_add(bytes.len()));
        OwnedImages {
            file,
            shared: (total > file.len()).then(|| Arc::from(file)),
        }
    }

    fn own(&self, image: &Image<'_>) -> Image<'static> {
        let Some((all, bytes)) = self.shared.as_ref().zip(image.borrowed()) else {
            return image.to_owned();
        };
        let start = bytes.as_ptr().addr().checked_sub(self.file.as_ptr().addr());
        match start.map(|start| start..start + bytes.len()) {
            Some(part) if self.file.get(part.clone()).is_some() => image.in_shared(all, part),
            _ => image.to_owned(),
        }
    }
}

impl Maps<'_> {
    /// Offset in bytes of the global variables in the arena: at its end if the kernel
    /// supports offsets of 32 bits.
    pub(crate) fn arena_offset(&self, kernel: &Kernel) -> u64 {
        let arena = self.arena.and_then(|id| self.get(id));
        match arena {
            Some(map) if kernel.features().wide_offsets => {
                let size = u64::from(map.params.max_entries) * u64::from(PAGE_SIZE);
                let variables = map.image().map_or(0, |image| u64::from(image.size()));
                size.saturating_sub(variables.next_multiple_of(PAGE_SIZE.into()))
            }
            _ => 0,
        }
    }
}

impl Map<'_> {
    fn definition(
        &self,
        has_btf: bool,
        (kernel, rules): (&Kernel, &LoaderRules),
        table: Option<&Table>,
        contents: InitialContents,
    ) -> MapDef {
        let adjusted = |params| adjusted(params, kernel, rules);
        let mut params = adjusted(self.params);
        if self.struct_ops().is_some() {
            params.value_type = TypeId::VOID;
        }
        if let Some(table) = table {
            params.value_size = table.image.size();
            if table.module != 0 {
                params.flags = params.flags.with(MapFlags::VTYPE_BTF_OBJ_FD);
            }
        }
        let inner = self.inner.filter(|_| is_map_of_maps(&self.params));
        MapDef {
            name: self.name.clone(),
            kernel_name: self.kernel_name().to_owned(),
            has_btf: has_btf && supports_btf(&self.params),
            kernel_value: table.map(|table| KernelTypeId {
                id: table.value,
                module: table.module,
            }),
            inner: inner.map(|inner| {
                let name = format!("{}.inner", self.kernel_name);
                let mut def = MapDef::new(name, adjusted(inner));
                def.has_btf = has_btf && supports_btf(&inner);
                Arc::new(def)
            }),
            ifindex: self.device,
            params,
            contents,
        }
    }
}

fn is_map_of_maps(params: &MapParams) -> bool {
    params.kind().is_some_and(MapKind::is_map_of_maps)
}

fn supports_btf(params: &MapParams) -> bool {
    params.kind().is_none_or(MapKind::supports_btf)
}

fn adjusted(params: MapParams, kernel: &Kernel, rules: &LoaderRules) -> MapParams {
    let mut adjusted = params;
    if params.kind() == Some(MapKind::PerfEventArray) && params.max_entries == 0 {
        adjusted.max_entries = kernel.cpus();
    }
    if rules.completes_sizes {
        complete(&mut adjusted, kernel.cpus());
    }
    if !supports_btf(&params) {
        adjusted.key_type = TypeId::VOID;
        adjusted.value_type = TypeId::VOID;
    }
    adjusted
}

/// Sets the sizes of kinds that allow one only, and entries by CPU.
fn complete(params: &mut MapParams, cpus: u32) {
    let kind = params.kind();
    let set = |size: &mut u32| {
        if *size == 0 {
            *size = 4;
        }
    };
    if kind.is_some_and(MapKind::is_map_of_maps) || kind == Some(MapKind::PerfEventArray) {
        set(&mut params.value_size);
    }
    if kind == Some(MapKind::PerfEventArray) {
        set(&mut params.key_size);
    }
    if kind.is_some_and(MapKind::has_entry_by_cpu)
        && (params.max_entries == 0 || params.max_entries > cpus)
    {
        params.max_entries = cpus;
    }
}
