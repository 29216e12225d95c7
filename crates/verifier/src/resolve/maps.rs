//! Maps of the program as the verifier sees them, and the checks of their use.

use std::ops::Index;
use std::sync::Arc;

use btf::fields::{FieldKind, FieldRecord};
use program::creation::{MapCreator, MapRefusal, RefusedMap};
use program::{InitialContents, MapDef, MapEntry, MapId, Program};
use spec::behaviour::Behaviour;
use spec::limits;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use crate::Result;
use crate::input::Input;
use crate::log::Sink;
use crate::state::MapRef;

/// One map.
#[derive(Clone, Debug)]
pub struct Map {
    def: Arc<MapDef>,
    record: FieldRecord,
    inner: Option<MapRef>,
    has_btf: bool,
    /// The first bytes of the value at key 0 that are not zero.
    contents: Vec<u8>,
    /// Why the kernel does not create it.
    refusal: Option<MapRefusal>,
    /// Why the kernel creates it without types that it states.
    types_refusal: Option<MapRefusal>,
}

impl Map {
    /// The map's definition.
    pub fn def(&self) -> &MapDef {
        &self.def
    }

    /// Map kind, if the type is known.
    pub fn kind(&self) -> Option<MapKind> {
        self.def.kind()
    }

    /// Bytes of a key.
    pub fn key_size(&self) -> u32 {
        self.def.params.key_size
    }

    /// Bytes of a value.
    pub fn value_size(&self) -> u32 {
        self.def.params.value_size
    }

    /// Bytes that a pointer to a value may access: of a jump table, all addresses (`map_mem_size`).
    #[doc(alias = "map_mem_size")]
    pub fn region_size(&self) -> u32 {
        match self.is_jump_table() {
            true => self.max_entries().saturating_mul(8),
            false => self.value_size(),
        }
    }

    /// True for maps of targets of jumps.
    pub fn is_jump_table(&self) -> bool {
        self.kind() == Some(MapKind::InsnArray)
    }

    /// Targets of jumps by key.
    pub fn jump_targets(&self) -> &[u32] {
        match &self.def.contents {
            InitialContents::JumpTable(targets) => targets,
            InitialContents::Entries(_)
            | InitialContents::Value { .. }
            | InitialContents::Arena { .. }
            | InitialContents::StructOps { .. } => &[],
        }
    }

    /// Most entries; a map of no entries is created with one.
    pub fn max_entries(&self) -> u32 {
        self.def.params.max_entries
    }

    /// Name that the kernel has.
    pub fn kernel_name(&self) -> &str {
        &self.def.kernel_name
    }

    /// True if BTF describes its values.
    pub fn has_btf(&self) -> bool {
        self.has_btf
    }

    /// The special fields of its values.
    pub fn record(&self) -> &FieldRecord {
        &self.record
    }

    /// Why the kernel creates it without types that it states.
    pub fn types_refusal(&self) -> Option<&MapRefusal> {
        self.types_refusal.as_ref()
    }

    /// The template of the maps that it holds.
    pub fn inner(&self) -> Option<MapRef> {
        self.inner
    }

    /// True if programs may read its values.
    pub fn can_read(&self) -> bool {
        !self.def.params.flags.has(MapFlags::WRONLY_PROG)
    }

    /// True if programs may write its values.
    pub fn can_write(&self) -> bool {
        let added = self
            .kind()
            .map_or(MapFlags::default(), MapKind::added_flags);
        !self.def.params.flags.with(added).has(MapFlags::RDONLY_PROG)
    }

    /// True if nothing changes its values any more (`bpf_map_is_rdonly`).
    #[doc(alias = "bpf_map_is_rdonly")]
    pub fn is_rdonly(&self) -> bool {
        self.def.params.flags.has(MapFlags::RDONLY_PROG) && self.def.is_frozen()
    }

    /// `size` bytes at `off` of the value at key 0, extended by zero or sign
    /// (`bpf_map_direct_read`).
    #[doc(alias = "bpf_map_direct_read")]
    pub fn constant(&self, off: u32, size: u32, signed: bool) -> u64 {
        let mut bytes = [0; 8];
        for (index, byte) in bytes.iter_mut().enumerate().take(size as usize) {
            *byte = self.byte(off as usize + index);
        }
        let value = u64::from_le_bytes(bytes);
        let unused = 64 - 8 * size.clamp(1, 8);
        match signed {
            true => ((value << unused) as i64 >> unused) as u64,
            false => value,
        }
    }

    /// The byte at `off` of the value at key 0.
    pub fn byte(&self, off: usize) -> u8 {
        self.contents.get(off).copied().unwrap_or(0)
    }
}

/// The program's maps, and behind them the templates of the maps that they hold.
#[derive(Clone, Debug, Default)]
pub struct Maps(Vec<Map>);

impl Index<MapRef> for Maps {
    type Output = Map;

    fn index(&self, map: MapRef) -> &Map {
        &self.0[map.0 as usize]
    }
}

impl Maps {
    /// The maps of a program, as they are created.
    pub fn new(program: &Program, creator: &MapCreator<'_>) -> Maps {
        let maps = program.maps().iter();
        let mut maps: Vec<Map> = maps
            .map(|def| Maps::describe(program, creator, def))
            .collect();
        let mut index = 0;
        while index < maps.len() {
            if let Some(inner) = maps[index].def.inner.clone() {
                let next = MapRef(maps.len() as u32);
                maps[index].inner = Some(next);
                maps.push(Maps::describe(program, creator, &inner));
            }
            index += 1;
        }
        Maps(maps)
    }

    fn describe(program: &Program, creator: &MapCreator<'_>, def: &Arc<MapDef>) -> Map {
        let types = program.btf().map(|types| &**types);
        let created = creator.create(def, types);
        let described = created.as_ref().ok();
        Map {
            record: described.map_or_else(FieldRecord::default, |map| map.fields.clone()),
            inner: None,
            has_btf: described.is_some_and(|map| map.has_btf),
            contents: def
                .initial_value()
                .map_or_else(Vec::new, |image| image.start().to_vec()),
            types_refusal: described.and_then(|map| map.types_refusal.clone()),
            refusal: created.err(),
            def: Arc::clone(def),
        }
    }

    /// The first map that a program uses and the kernel does not create: one that an instruction
    /// refers to, or that such a map holds from the start.
    pub fn refused(&self, program: &Program) -> Option<RefusedMap> {
        let held = |id: MapId| {
            let entries = self.0[id.0 as usize].def.contents.entries().iter();
            let maps = entries.filter_map(|(_, entry)| match entry {
                MapEntry::Map(held) => Some(*held),
                MapEntry::Program(_) => None,
            });
            std::iter::once(id).chain(maps)
        };
        let used = program.used_maps();
        let mut used = used.iter().flat_map(|id| held(*id));
        used.find_map(|id| {
            let map = self.0.get(id.0 as usize)?;
            Some(RefusedMap {
                name: map.def.name.clone(),
                kind: map.kind(),
                refusal: map.refusal.clone()?,
            })
        })
    }
}

/// True if all targets of a frozen jump table are instructions (`bpf_insn_array_init`).
#[doc(alias = "bpf_insn_array_init")]
fn has_targets(program: &Program, targets: &[u32]) -> bool {
    let insns = program.insns();
    let is_target = |target: &u32| {
        let at = *target as usize;
        let is_inside = |before: usize| insns[before].is_wide_load();
        at < insns.len() && !at.checked_sub(1).is_some_and(is_inside)
    };
    !targets.is_empty() && targets.iter().all(is_target)
}

/// The maps used so far, in order of use.
pub(super) struct UsedMaps<'e> {
    input: &'e Input<'e>,
    used: Vec<MapRef>,
    cgroup_storage: [Option<MapRef>; 2],
    arena: Option<MapRef>,
}

impl<'e> UsedMaps<'e> {
    pub(super) fn new(input: &'e Input<'_>) -> UsedMaps<'e> {
        UsedMaps {
            input,
            used: Vec::new(),
            cgroup_storage: [None; 2],
            arena: None,
        }
    }

    /// Notes that the program uses a map, and checks that it may (`__add_used_map`, `add_used_map`,
    /// `add_used_map_from_fd`).
    #[doc(alias = "__add_used_map")]
    #[doc(alias = "add_used_map")]
    #[doc(alias = "add_used_map_from_fd")]
    pub(super) fn add(&mut self, env: &mut Sink<'_>, map: MapRef) -> Result<()> {
        if self.used.contains(&map) {
            return Ok(());
        }
        let limit = limits::MAPS;
        refuse_if!(self.used.len() >= limit as usize, env => Program::TooManyMaps { limit });
        self.check_compatibility(env, map)?;
        self.used.push(map);
        let info = &self.input.maps[map];
        match info.is_jump_table() && !has_targets(self.input.program, info.jump_targets()) {
            true => Err(refuse!(env => Program::JumpTableNotReady)),
            false => Ok(()),
        }
    }

    /// Linux's `check_map_prog_compatibility` and `bpf_map_is_cgroup_storage`.
    #[doc(alias = "check_map_prog_compatibility")]
    #[doc(alias = "bpf_map_is_cgroup_storage")]
    fn check_compatibility(&mut self, env: &mut Sink<'_>, map: MapRef) -> Result<()> {
        let input = self.input;
        let info = &input.maps[map];
        let record = info.record();
        let rules = input.registry.rules(&input.context);
        let refused = rules.map_or(0, |rules| rules.refused_fields);
        let is_refused = |kinds: &[FieldKind]| {
            let mut kinds = kinds.iter();
            kinds.any(|kind| record.has(*kind) && refused & kind.bit() != 0)
        };
        let is_socket_filter = input.context.kind == ProgramType::SocketFilter;
        let whose = match is_socket_filter {
            true => "socket filter",
            false => "tracing",
        };
        let is_asleep = input.context.sleepable && !input.rules.has(Behaviour::LocksSleep);
        let is_refused_first = is_socket_filter || input.type_rules().is_tracing;
        let holds_lock = record.has(FieldKind::SpinLock) && !is_refused_first;
        let whose = match is_asleep && holds_lock {
            true => "sleepable",
            false => whose,
        };
        let field = if is_asleep && holds_lock {
            Some(FieldKind::SpinLock.name())
        } else if is_refused(&[FieldKind::ListHead, FieldKind::RbRoot]) {
            Some("bpf_{list_head,rb_root}")
        } else if is_refused(&[FieldKind::SpinLock, FieldKind::ResSpinLock]) {
            Some(FieldKind::SpinLock.name())
        } else if is_refused(&[FieldKind::Timer]) {
            Some(FieldKind::Timer.name())
        } else if is_refused(&[FieldKind::Workqueue]) {
            Some(FieldKind::Workqueue.name())
        } else {
            None
        };
        if let Some(field) = field {
            return Err(refuse!(env => Program::FieldForType { whose, field }));
        }
        refuse_if!(info.kind() == Some(MapKind::StructOps), env => Program::StructOpsMap);
        let in_sleepable = info
            .kind()
            .and_then(|kind| input.registry.map(kind))
            .is_none_or(|traits| traits.in_sleepable);
        refuse_if!(input.context.sleepable && !in_sleepable, env => Program::MapForSleepable);
        if let Some(kind) = info.kind().filter(|kind| kind.is_cgroup_storage())
            && self.cgroup_storage[usize::from(kind.is_percpu())]
                .replace(map)
                .is_some()
        {
            return Err(refuse!(env => Program::SecondCgroupStorage));
        }
        if info.kind() == Some(MapKind::Arena) {
            refuse_if!(self.arena.replace(map).is_some(), env => Program::SecondArena);
            if !input.allow_ptr_leaks || !input.bpf_capable {
                return Err(refuse!(env => Program::ArenaPrivilege));
            }
        }
        Ok(())
    }
}
