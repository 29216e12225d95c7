//! The maps of a loaded object.

use std::sync::Arc;

use ::kernel::maps::{
    Arena, CURRENT_TASK, Host, LocalStorage, Map, PACKET_SOCKET, PerfBuffer, Resources, ValueLayout,
};
use btf::Btf;
use program::creation::{MapCreator, RefusedMap};
use program::{InitialContents, MapDef};
use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use vm::ArenaObject as _;

use interp::checked::Permission;

use super::{LoadError, ReusedMaps, RunRecord, records};
use crate::internal::maps_json::MapFormats;

/// What the maps of an object are created with.
pub(super) struct Creation<'a> {
    /// The rules of the kernel.
    pub(super) creator: MapCreator<'a>,
    /// The types of the program.
    pub(super) types: Option<&'a Btf<'a>>,
    /// The machine.
    pub(super) host: &'a Host,
    /// Maps of other objects to use.
    pub(super) reused: &'a ReusedMaps,
}

impl Creation<'_> {
    /// Creates a map of a definition, with the template of its inner maps, if it is a map of maps.
    fn create(&self, def: &MapDef, template: Option<&Map>) -> Result<Map, LoadError> {
        let layout = self.layout(def)?;
        // Global variables are addressed without lookups, which a journal does not see.
        let plain = (self.host.journals && def.initial_value().is_some()).then(|| Host {
            journals: false,
            ..self.host.clone()
        });
        let host = plain.as_ref().unwrap_or(self.host);
        let map = Map::create_with(&def.params, layout, host, template);
        map.map_err(|errno| self.failed(def, errno))
    }

    /// The layout of the values of a map that the kernel creates.
    fn layout(&self, def: &MapDef) -> Result<ValueLayout, LoadError> {
        let refused = |refusal| {
            let (name, kind) = (def.name.clone(), def.kind());
            LoadError::Map(RefusedMap {
                name,
                kind,
                refusal,
            })
        };
        let created = self.creator.create(def, self.types).map_err(refused)?;
        let size = def.params.value_size as usize;
        Ok(ValueLayout::with_fields(size, &created.fields))
    }

    /// The failure of a map that the kernel creates.
    fn failed(&self, def: &MapDef, errno: Errno) -> LoadError {
        match self.host.memory.take_refused() {
            true => LoadError::Memory {
                map: def.name.clone(),
                limit: self.host.memory.limit(),
            },
            false => LoadError::of_map(def, errno),
        }
    }
}

/// A key and its value, as bytes.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A map of an object, and its definition.
#[derive(Debug)]
pub struct ObjectMap {
    /// The definition.
    pub def: Arc<MapDef>,
    /// The map.
    pub map: Arc<Map>,
    /// The perf buffers that the host opened in it, by CPU.
    pub(super) perf_buffers: Vec<Arc<PerfBuffer>>,
    /// Values of the maps that it holds have timers.
    pub(super) inner_has_timers: bool,
    /// Forms of fields of its keys and values that are chosen.
    pub(super) formats: MapFormats,
}

/// Perf buffers by descriptor, which is the CPU.
struct PerfBuffers<'b>(&'b [Arc<PerfBuffer>]);

impl Resources for PerfBuffers<'_> {
    fn perf_buffer(&self, descriptor: u32) -> Option<Arc<PerfBuffer>> {
        self.0.get(descriptor as usize).cloned()
    }
}

impl ObjectMap {
    /// Forms of fields that are chosen.
    pub(crate) fn formats(&self) -> &MapFormats {
        &self.formats
    }

    /// Creates a map and fills it as its object says.
    pub(super) fn create(
        def: &Arc<MapDef>,
        creation: &Creation<'_>,
    ) -> Result<ObjectMap, LoadError> {
        let layout = creation.layout(def)?;
        if let Some(reused) = creation.reused.find(def, &layout, creation.host.cpus)? {
            return Ok(reused);
        }
        let failed = |errno| creation.failed(def, errno);
        match &def.contents {
            // Programs and maps are put in when all are there.
            InitialContents::Entries(_)
            | InitialContents::Value { .. }
            | InitialContents::Arena { .. } => {}
            InitialContents::StructOps { .. } | InitialContents::JumpTable(_) => {
                return Err(failed(Errno::ENOTSUPP));
            }
        }
        let template = match &def.inner {
            Some(inner) => Some(Arc::new(creation.create(inner, None)?)),
            None => None,
        };
        let map = creation.create(def, template.as_deref())?;
        if let Some(image) = def.initial_value() {
            match map.operations().direct_value() {
                // Zeros that are not written take no memory.
                Some(value) if !map.has_special_fields() => value.write(0, image.start()),
                _ => map.update(&[0; 4], &image.to_vec(), 0).map_err(failed)?,
            }
        }
        if def.is_frozen() {
            map.freeze().map_err(failed)?;
        }
        let made = ObjectMap {
            def: def.clone(),
            map: Arc::new(map),
            perf_buffers: Vec::new(),
            inner_has_timers: template.is_some_and(|template| template.handle().timers.is_some()),
            formats: MapFormats::default(),
        };
        if let (InitialContents::Arena { image, .. }, Some((arena, start))) =
            (&def.contents, made.arena_variables())
        {
            (arena.write_as_user(start, &image.to_vec())).map_err(failed)?;
        }
        Ok(made)
    }

    /// Takes the complete records of a ring buffer, or of the perf buffers of a CPU.
    pub(crate) fn take_records(&self, cpu: u32) -> Vec<RunRecord> {
        records::take(&[self], cpu)
    }

    /// Number of records that had no room in the perf buffer of a CPU.
    pub(crate) fn lost_records(&self, cpu: u32) -> u64 {
        let buffer = self.perf_buffers.get(cpu as usize);
        buffer.map_or(0, |buffer| buffer.lost())
    }

    /// True if perf buffers were opened in it.
    pub(crate) fn has_perf_buffers(&self) -> bool {
        !self.perf_buffers.is_empty()
    }

    /// The values of local storage, by the objects that they belong to; none of other maps.
    pub fn owned_values(&self) -> Vec<(StorageOwner, Vec<u8>)> {
        let Some(storage) = self.map.of_kind::<LocalStorage>() else {
            return Vec::new();
        };
        let owners = storage.owners().into_iter();
        let values = owners.filter_map(|owner| {
            let value = storage.bytes(owner)?;
            Some((StorageOwner::of(owner), value))
        });
        values.collect()
    }

    /// Sets the value of an object in local storage; ENOTSUPP for other maps.
    pub fn set_owned_value(&self, owner: StorageOwner, value: &[u8]) -> Result<(), Errno> {
        let storage = self.map.of_kind::<LocalStorage>();
        let storage = storage.ok_or(Errno::ENOTSUPP)?;
        storage.set(owner.number(), value, 0).map(drop)
    }

    /// The value of an object in local storage; `None` if it has none, and for other maps.
    pub(crate) fn owned_value(&self, owner: StorageOwner) -> Option<Vec<u8>> {
        self.map.of_kind::<LocalStorage>()?.bytes(owner.number())
    }

    /// Removes the value of an object in local storage; ENOENT if it has none, ENOTSUPP for other maps.
    pub(crate) fn remove_owned_value(&self, owner: StorageOwner) -> Result<(), Errno> {
        let storage = self.map.of_kind::<LocalStorage>();
        storage.ok_or(Errno::ENOTSUPP)?.remove(owner.number())
    }

    /// The memory of an arena, and the address in user space of its global variables.
    pub(super) fn arena_variables(&self) -> Option<(&Arena, u64)> {
        let arena = self.map.of_kind::<Arena>()?;
        let offset = match &self.def.contents {
            InitialContents::Arena { offset, .. } => *offset,
            _ => 0,
        };
        Some((arena, arena.user_start() + offset))
    }

    /// Creates a map that fits this map of maps; EINVAL if this is none.
    pub(super) fn create_inner(&self, host: &Host) -> Result<Map, Errno> {
        let inner = self.def.inner.as_ref().ok_or(Errno::EINVAL)?;
        let layout = ValueLayout::plain(inner.params.value_size as usize);
        Map::create(&inner.params, layout, host)
    }

    /// Opens a perf buffer of `bytes` for each CPU in a `perf_event_array`; other maps stay
    /// as they are.
    pub(super) fn open_perf_buffers(&mut self, cpus: u32, bytes: usize) -> Result<(), Errno> {
        if self.map.kind() != MapKind::PerfEventArray {
            return Ok(());
        }
        let cpus = cpus.min(self.def.params.max_entries);
        let buffers: Vec<_> = (0..cpus)
            .map(|cpu| Arc::new(PerfBuffer::new(cpu, bytes)))
            .collect();
        for cpu in 0..cpus {
            let place = cpu.to_le_bytes();
            (self.map).update_with(&place, &place, 0, &PerfBuffers(&buffers))?;
        }
        self.perf_buffers = buffers;
        Ok(())
    }

    /// Access of programs to its values.
    pub(super) fn permission(&self) -> Permission {
        let flags = self.def.params.flags.with(self.map.kind().added_flags());
        match flags.0 & MapFlags::RDONLY_PROG.0 {
            0 => Permission::ReadWrite,
            _ => Permission::ReadOnly,
        }
    }

    /// All entries, as [`ObjectMap::iter_entries`] reads them.
    pub fn entries(&self) -> Result<Vec<Entry>, Errno> {
        self.iter_entries().collect()
    }

    /// The entries, read one after the other as by system calls: of per-CPU maps the values of
    /// all CPUs. The order is that of iteration. An error is the last item.
    pub fn iter_entries(&self) -> impl Iterator<Item = Result<Entry, Errno>> {
        let mut last: Option<Vec<u8>> = None;
        let mut is_over = false;
        std::iter::from_fn(move || {
            while !is_over {
                match self.entry_after(&mut last) {
                    Ok(Some(entry)) => return Some(Ok(entry)),
                    // Its value cannot be read.
                    Ok(None) => {}
                    Err(Errno::ENOENT) => is_over = true,
                    Err(errno) => {
                        is_over = true;
                        return Some(Err(errno));
                    }
                }
            }
            None
        })
    }

    /// The entry after a key, which becomes its key; ENOENT behind the last one.
    fn entry_after(&self, last: &mut Option<Vec<u8>>) -> Result<Option<Entry>, Errno> {
        let mut key = vec![0; self.def.params.key_size as usize];
        self.map.next_key(last.as_deref(), &mut key)?;
        let key = last.insert(key);
        let mut value = vec![0; self.map.value_len()];
        match self.map.lookup(key, &mut value, 0) {
            // Linux returns the cookies of sockets only in values of 8 bytes.
            Ok(()) | Err(Errno::ENOSPC) => Ok(Some((key.clone(), value))),
            // An `xskmap` shows no values.
            Err(Errno::EOPNOTSUPP) if self.map.operations().socket(key).is_some() => {
                Ok(Some((key.clone(), value)))
            }
            Err(Errno::ENOENT | Errno::EOPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// An object of the kernel that values of local storage belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageOwner {
    /// The task that runs.
    Task,
    /// The socket of the packet of a test run.
    PacketSocket,
    /// A socket by its cookie, or an object by its address.
    Number(u64),
}

impl StorageOwner {
    fn of(number: u64) -> StorageOwner {
        match number {
            CURRENT_TASK => StorageOwner::Task,
            PACKET_SOCKET => StorageOwner::PacketSocket,
            number => StorageOwner::Number(number),
        }
    }

    fn number(self) -> u64 {
        match self {
            StorageOwner::Task => CURRENT_TASK,
            StorageOwner::PacketSocket => PACKET_SOCKET,
            StorageOwner::Number(number) => number,
        }
    }
}
