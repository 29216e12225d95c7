//! The maps of a run: of every kind that runs, made anew for each run, with contents of the
//! run's seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use interp::checked::{Memory, NoRoom, Permission};
use isa::ebpf::{Imm64, Insn};
use kernel::maps::{Host, Map, Resources, Ring, RunGuard, StoredMap, ValueLayout};
use program::creation::MapCreator;
use program::{MapDef, Program};
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Kernel};
use verifier::state::MapRef;
use vm::{MapHandle, Objects};

use super::setting::byte;
use testkit::ebpf::Choices;

/// Most entries of a map.
const MAX_ENTRIES: u32 = 4096;
/// Most bytes of the values of a map, or of a ring buffer.
const MAX_BYTES: u64 = 1 << 20;
/// Maps in each map of maps.
const INNER_MAPS: u32 = 2;

/// The definitions of a program's maps.
pub(super) struct MapSet {
    definitions: Vec<Definition>,
    cpus: u32,
    instances: Instances,
}

struct Definition {
    def: Arc<MapDef>,
    layout: ValueLayout,
    inner: Option<ValueLayout>,
    /// The map of all runs, if the program does not use it.
    unused: Option<Arc<Map>>,
}

/// By map of the verifier, the maps of a run's memory that it stands for: a map of the
/// program for itself, the template of a map of maps for the maps in that.
pub(super) struct Instances {
    maps: Vec<Vec<u32>>,
    /// By map of the program, the template of the maps in it.
    templates: Vec<Option<usize>>,
}

/// The maps of one run.
pub(super) struct RunMaps<'s> {
    set: &'s MapSet,
    maps: Vec<Arc<Map>>,
    inner: Vec<MapHandle>,
    /// The objects that programs allocate, which maps keep.
    pub(super) objects: Arc<Objects>,
}

/// One map by any descriptor.
struct Only(Arc<StoredMap>);

impl Resources for Only {
    fn map(&self, _: u32) -> Option<Arc<StoredMap>> {
        Some(Arc::clone(&self.0))
    }
}

impl Instances {
    pub(super) fn of(&self, map: MapRef) -> &[u32] {
        self.maps.get(map.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The maps in a map of maps: what lookups in it find.
    pub(super) fn inside(&self, map: MapRef) -> &[u32] {
        let template = self.templates.get(map.0 as usize).copied().flatten();
        template.map_or(&[], |template| &self.maps[template])
    }
}

impl Definition {
    fn new(program: &Program, kernel: &Kernel, def: &Arc<MapDef>) -> Result<Definition, String> {
        let registry = kernel.registry().ok_or("no registry")?;
        let creator = MapCreator::new(kernel, registry);
        let layout = |def: &MapDef| {
            let types = program.btf().map(|types| &**types);
            let created = creator
                .create(def, types)
                .map_err(|refusal| refusal.to_string())?;
            let size = def.params.value_size as usize;
            Ok::<_, String>(ValueLayout::with_fields(size, &created.fields))
        };
        let params = &def.params;
        let kind = def.kind().ok_or("unknown map")?;
        let bytes = match kind {
            MapKind::Ringbuf | MapKind::UserRingbuf => params.max_entries.into(),
            _ if params.max_entries > MAX_ENTRIES => u64::MAX,
            _ => u64::from(params.max_entries) * u64::from(params.value_size),
        };
        match bytes > MAX_BYTES {
            true => Err("large map".to_owned()),
            false => Ok(Definition {
                def: Arc::clone(def),
                layout: layout(def)?,
                inner: def.inner.as_deref().map(layout).transpose()?,
                unused: None,
            }),
        }
    }

    fn create(&self, host: &Host) -> Result<Map, Errno> {
        let template = self.inner(host).transpose()?;
        let layout = self.layout.clone();
        Map::create_with(&self.def.params, layout, host, template.as_ref())
    }

    /// A map that fits a map of maps.
    fn inner(&self, host: &Host) -> Option<Result<Map, Errno>> {
        let (inner, layout) = (self.def.inner.as_ref()?, self.inner.clone()?);
        Some(Map::create(&inner.params, layout, host))
    }

    /// Number of maps that are put into a map of maps.
    fn inner_maps(&self) -> u32 {
        match self.inner {
            Some(_) => self.def.params.max_entries.min(INNER_MAPS),
            None => 0,
        }
    }

    fn refused(&self, errno: Errno) -> String {
        let name = self.def.kind().map_or("map", MapKind::name);
        format!("{name} that is not created: {errno:?}")
    }

    fn permission(&self) -> Permission {
        match self.def.params.flags.0 & MapFlags::RDONLY_PROG.0 {
            0 => Permission::ReadWrite,
            _ => Permission::ReadOnly,
        }
    }
}

impl MapSet {
    /// The maps of a program on a machine with these CPUs; `Err` says what is not to be had.
    pub(super) fn new(program: &Program, kernel: &Kernel, cpus: u32) -> Result<MapSet, String> {
        let definitions = program.maps().iter();
        let definitions = definitions.map(|def| Definition::new(program, kernel, def));
        let mut definitions: Vec<Definition> = definitions.collect::<Result<_, String>>()?;
        let used = used_maps(program);
        let mut next = definitions.len() as u32;
        let mut instances = Instances {
            maps: (0..next).map(|index| vec![index]).collect(),
            templates: vec![None; definitions.len()],
        };
        for (index, definition) in definitions.iter().enumerate() {
            if definition.inner.is_some() {
                let count = match used.contains(&(index as u32)) {
                    true => definition.inner_maps(),
                    false => 0,
                };
                instances.templates[index] = Some(instances.maps.len());
                instances.maps.push((next..next + count).collect());
                next += count;
            }
        }
        let host = Host::new(cpus, 1);
        for (index, definition) in (0..).zip(&mut definitions) {
            let map = definition.create(&host);
            let map = map.map_err(|errno| definition.refused(errno))?;
            definition.unused = (!used.contains(&index)).then(|| Arc::new(map));
        }
        Ok(MapSet {
            definitions,
            cpus,
            instances,
        })
    }

    pub(super) fn instances(&self) -> &Instances {
        &self.instances
    }

    /// The maps of a run: values that the program's object says, bytes of the seed where
    /// nothing is said or programs may have changed it.
    pub(super) fn create(&self, seed: u64) -> Result<RunMaps<'_>, String> {
        let mut choices = Choices::from_seed(!seed);
        let (mut maps, mut inner) = (Vec::new(), Vec::new());
        let host = Host::new(self.cpus, 1);
        for definition in &self.definitions {
            if let Some(map) = &definition.unused {
                maps.push(Arc::clone(map));
                continue;
            }
            let map = definition.create(&host);
            let map = map.map_err(|errno| definition.refused(errno))?;
            for index in 0..definition.inner_maps() {
                let Some(held) = definition.inner(&host) else {
                    continue;
                };
                let held = held.map_err(|errno| definition.refused(errno))?;
                fill(&held, None, false, &mut choices);
                let held = Only(Arc::new(StoredMap::new(index + 1, Arc::new(held))));
                let put = map.update_with(&index.to_ne_bytes(), &[0; 4], 0, &held);
                put.map_err(|errno| definition.refused(errno))?;
            }
            match definition.inner {
                Some(_) => inner.extend(
                    (map.operations().inner_maps().iter()).map(|inner| inner.map.handle().clone()),
                ),
                None => {
                    let image = definition.def.initial_value();
                    let image = image.map(|image| image.to_vec());
                    let is_frozen = definition.def.is_frozen();
                    fill(&map, image.as_deref(), is_frozen, &mut choices);
                }
            }
            maps.push(Arc::new(map));
        }
        Ok(RunMaps {
            set: self,
            maps,
            inner,
            objects: host.objects,
        })
    }
}

impl RunMaps<'_> {
    /// Adds the maps to the memory of a run.
    pub(super) fn add_to<'m>(
        &'m self,
        memory: &mut Memory<'m>,
        guard: &'m RunGuard,
    ) -> Result<(), NoRoom> {
        for (definition, map) in self.set.definitions.iter().zip(&self.maps) {
            let name = &*definition.def.name;
            memory.add_map(name, map.handle(), guard, definition.permission())?;
        }
        for handle in &self.inner {
            memory.add_inner_map(handle, guard)?;
        }
        Ok(())
    }

    /// Contents of all maps, as the host reads them.
    pub(super) fn contents(&self) -> Vec<Vec<u8>> {
        self.maps.iter().map(|map| contents(map)).collect()
    }
}

/// Indices of the maps that a program's instructions refer to.
fn used_maps(program: &Program) -> BTreeSet<u32> {
    let insns = program.decode();
    let maps = insns.iter().filter_map(|insn| match insn {
        Insn::LoadImm64 {
            imm: Imm64::MapIndex { index, .. } | Imm64::MapIndexValue { index, .. },
            ..
        } => u32::try_from(*index).ok(),
        _ => None,
    });
    maps.collect()
}

/// Gives a map entries of random bytes; the first value of global variables is mostly the
/// given one, which frozen maps always have.
fn fill(map: &Map, image: Option<&[u8]>, is_frozen: bool, choices: &mut Choices<'_>) {
    let (params, kind) = (map.params(), map.kind());
    let is_array = matches!(kind, MapKind::Array | MapKind::PercpuArray);
    let entries = match is_array {
        true => params.max_entries,
        false => params.max_entries.min(8),
    };
    for index in 0..entries {
        let key: Vec<u8> = match (is_array, kind, params.key_size) {
            (true, ..) => index.to_ne_bytes().to_vec(),
            (_, MapKind::LpmTrie, size) => {
                let bits = 8 * size.saturating_sub(4);
                let length = choices.below(bits + 1);
                let address = (4..size).map(|_| choices.below(16) as u8);
                length.to_ne_bytes().into_iter().chain(address).collect()
            }
            (_, _, 4) => choices.below(2 * entries).to_ne_bytes().to_vec(),
            (_, _, size) => (0..size).map(|_| byte(choices)).collect(),
        };
        let is_initial = is_frozen || choices.percent(30);
        let mut value: Vec<u8> = (0..map.value_len()).map(|_| byte(choices)).collect();
        if let Some(image) = image.filter(|_| index == 0 && is_initial) {
            value.copy_from_slice(image);
        }
        let is_filled = match kind {
            MapKind::Hash
            | MapKind::LruHash
            | MapKind::PercpuHash
            | MapKind::LruPercpuHash
            | MapKind::LpmTrie
            | MapKind::Queue
            | MapKind::Stack
            | MapKind::BloomFilter => choices.percent(70),
            _ => is_array,
        };
        if is_filled {
            // A full map, or one that its user may not write, stays as it is.
            let _ = map.update(&key, &value, 0);
        }
    }
}

/// Contents of a map; empty for kinds whose entries are objects.
fn contents(map: &Map) -> Vec<u8> {
    let mut contents = Vec::new();
    let mut value = vec![0; map.value_len()];
    match map.kind() {
        MapKind::Queue | MapKind::Stack => {
            while map.lookup_and_delete(&[], &mut value, 0).is_ok() {
                contents.extend_from_slice(&value);
            }
        }
        MapKind::Ringbuf => {
            let ring = map.of_kind::<Ring>();
            contents.extend(std::iter::from_fn(|| ring?.consume()).flatten());
        }
        _ => {
            let mut last: Option<Vec<u8>> = None;
            let mut key = vec![0; map.params().key_size as usize];
            while map.next_key(last.as_deref(), &mut key).is_ok() {
                if map.lookup(&key, &mut value, 0).is_ok() {
                    contents.extend(key.iter().chain(&value));
                }
                last = Some(key.clone());
            }
        }
    }
    contents
}
