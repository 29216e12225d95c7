//! Maps as a kernel is asked for them, after everything that a loader adjusts: names
//! cut to what fits, types left out where the kind takes none, sizes that depend on
//! the machine, and the contents.

use btf::TypeId;
use spec::maps::{MapFlags, MapKind};

use super::kernel_ops::{Bindings, Table};
use super::{Contents, Definition, Entry, Image, Map, Maps, PAGE};
use crate::externs::ResolvedExterns;
use crate::programs::ProgramId;
use crate::target::Target;

/// A map as a kernel is asked for it (`BPF_MAP_CREATE`), and what it holds from the
/// start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMap<'a> {
    /// Its name, as users know it.
    pub name: String,
    /// Its name, as the kernel gets it.
    pub kernel_name: String,
    /// What it is created with. Types are of the object.
    pub definition: Definition,
    /// Do the types of the object go along?
    pub described: bool,
    /// The kernel's type of its value, for tables of functions.
    pub kernel_value: Option<KernelValue>,
    /// What the maps that it holds are created with.
    pub inner: Option<Box<NewMap<'static>>>,
    /// The network device that it is for, by number; 0 for none.
    pub device: u32,
    /// Is it to be created at all?
    pub autocreate: bool,
    /// Where it is pinned, as a path.
    pub pin: Option<String>,
    /// What it holds from the start.
    pub start: Start<'a>,
}

/// A type of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelValue {
    /// The type.
    pub ty: TypeId,
    /// The number of the module that has it, from 1; 0 is the kernel itself.
    pub module: u16,
}

/// What a map holds from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start<'a> {
    /// Maps or programs, by key; programs when all are loaded.
    Entries(Vec<(u32, Entry)>),
    /// The value at key 0.
    Value {
        /// Its bytes.
        image: Image<'a>,
        /// May nobody change it any more?
        frozen: bool,
    },
    /// Memory of an arena.
    Arena {
        /// Its bytes.
        image: Image<'a>,
        /// Bytes from the start of the arena.
        offset: u64,
    },
    /// A table of functions, at key 0.
    Table {
        /// Its bytes, functions zero.
        image: Image<'a>,
        /// The programs, by offset.
        programs: Vec<(u32, ProgramId)>,
    },
}

impl<'a> Maps<'a> {
    /// All maps as the target is asked for them, by number. `described` says whether
    /// the object has types.
    pub(crate) fn created(
        &self,
        described: bool,
        target: &Target<'_>,
        externs: &ResolvedExterns,
        bindings: &Bindings,
    ) -> Vec<NewMap<'a>> {
        self.iter()
            .map(|(id, map)| {
                let start = match &map.contents {
                    Contents::Data(data) if Some(id) == self.kconfig => Start::Value {
                        image: externs.config.clone(),
                        frozen: data.kind.is_frozen(),
                    },
                    Contents::Arena(image) => Start::Arena {
                        image: image.clone(),
                        offset: self.arena_offset(target),
                    },
                    _ => map.start(bindings.tables.get(&id)),
                };
                map.created(described, target, bindings.tables.get(&id), start)
            })
            .collect()
    }

    /// Bytes from the start of the arena to the variables in it: they stand at its
    /// end, where kernels take references that far.
    pub(crate) fn arena_offset(&self, target: &Target<'_>) -> u64 {
        let arena = self.arena.and_then(|id| self.get(id));
        match arena {
            Some(map) if target.features.wide_offsets => {
                let size = u64::from(map.definition.max_entries) * u64::from(PAGE);
                let variables = map.image().map_or(0, |image| u64::from(image.size()));
                size.saturating_sub(variables.next_multiple_of(PAGE.into()))
            }
            _ => 0,
        }
    }
}

impl<'a> Map<'a> {
    fn start(&self, table: Option<&Table>) -> Start<'a> {
        match (&self.contents, table) {
            (Contents::Entries(entries), _) => {
                Start::Entries(entries.iter().map(|(&key, &entry)| (key, entry)).collect())
            }
            (Contents::Data(data), _) => Start::Value {
                image: data.image.clone(),
                frozen: data.kind.is_frozen(),
            },
            (Contents::Arena(image), _) => Start::Arena {
                image: image.clone(),
                offset: 0,
            },
            (Contents::StructOps(_), Some(table)) => Start::Table {
                image: table.image.clone(),
                programs: table.programs.iter().map(|(&at, &of)| (at, of)).collect(),
            },
            // Nobody has looked at a kernel for a table that is not created.
            (Contents::StructOps(table), None) => Start::Table {
                image: table.image.clone(),
                programs: Vec::new(),
            },
        }
    }

    fn created(
        &self,
        described: bool,
        target: &Target<'_>,
        table: Option<&Table>,
        start: Start<'a>,
    ) -> NewMap<'a> {
        let mut definition = adjusted(self.definition, target);
        if self.struct_ops().is_some() {
            definition.value = TypeId::VOID;
        }
        if let Some(table) = table {
            definition.value_size = table.image.size();
            if table.module != 0 {
                definition.flags = definition.flags.with(MapFlags::VTYPE_BTF_OBJ_FD);
            }
        }
        let inner_name = format!("{}.inner", self.kernel_name);
        NewMap {
            name: self.name.clone(),
            kernel_name: self.kernel_name().to_owned(),
            definition,
            described: described && takes_types(&self.definition),
            kernel_value: table.map(|table| KernelValue {
                ty: table.value,
                module: table.module,
            }),
            inner: self
                .inner
                .filter(|_| holds_maps(&self.definition))
                .map(|inner| {
                    Box::new(NewMap {
                        kernel_name: super::cut(&inner_name, spec::maps::MAX_NAME).to_owned(),
                        name: inner_name,
                        definition: adjusted(inner, target),
                        described: described && takes_types(&inner),
                        kernel_value: None,
                        inner: None,
                        device: 0,
                        autocreate: true,
                        pin: None,
                        start: Start::Entries(Vec::new()),
                    })
                }),
            device: self.device,
            autocreate: self.autocreate,
            pin: self.pin.clone(),
            start,
        }
    }
}

fn holds_maps(definition: &Definition) -> bool {
    definition.kind().is_some_and(MapKind::holds_maps)
}

fn takes_types(definition: &Definition) -> bool {
    definition.kind().is_none_or(MapKind::takes_types)
}

fn adjusted(definition: Definition, target: &Target<'_>) -> Definition {
    let mut adjusted = definition;
    if definition.kind() == Some(MapKind::PerfEventArray) && definition.max_entries == 0 {
        adjusted.max_entries = target.cpus;
    }
    if !takes_types(&definition) {
        adjusted.key = TypeId::VOID;
        adjusted.value = TypeId::VOID;
    }
    adjusted
}
