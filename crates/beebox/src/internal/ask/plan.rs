//! The plan of calls of bpf(2) that load programs: operations as `crates/sys/guest/loader.rs` reads
//! them, then the bytes that their attributes point to.
//!
//! Each program has maps of its own, since some belong to the first program that uses them; its BTF is
//! loaded once for programs that follow each other with the same. Descriptors are slots, which
//! a program's operations free.

use std::fmt;
use std::sync::Arc;

use btf::{Btf, Kind};
use isa::ebpf::PseudoLoad;
use program::{InitialContents, MapDef, MapEntry, Program};
use spec::kernel::Release;
use spec::maps::MapKind;

use super::AskOptions;

/// Why a program is not asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// It attaches to another program.
    Target,
    /// It needs a module, which the kernel has not loaded.
    Module,
    /// It has more maps than there are descriptors.
    Maps,
    /// The machine ended before its answer.
    NoAnswer,
}

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotAsked::Target => "not asked: it attaches to another program",
            NotAsked::Module => "not asked: it needs a module, and none is loaded",
            NotAsked::Maps => "not asked: it has too many maps",
            NotAsked::NoAnswer => "no answer: the machine ended before",
        })
    }
}

/// Bytes of a log: the most that every release takes.
const LOG_SIZE: u32 = 0xff_fff0;
/// Bytes of a log that come back for the reason and the counts.
const SHORT_LOG: u32 = 4096;
/// Slots for descriptors; the first has the BTF.
const SLOTS: u32 = 4096;
const BTF_SLOT: u32 = 0;
/// No slot.
const NONE: u32 = u32::MAX;

const CALL: u32 = 1;
const PATCH: u32 = 2;
const LOAD: u32 = 3;
const CLOSE: u32 = 4;
const ARENA: u32 = 5;

/// Commands of bpf(2).
const MAP_CREATE: u32 = 0;
const MAP_UPDATE: u32 = 2;
const BTF_LOAD: u32 = 18;
const MAP_FREEZE: u32 = 22;

/// Attributes of a call: bytes, and the places of addresses and descriptors in them.
#[derive(Default)]
struct Attributes {
    bytes: Vec<u8>,
    /// Offset, kind and value.
    places: Vec<(u32, Place)>,
}

/// What stands at a place of attributes.
#[derive(Clone, Copy)]
enum Place {
    /// The address of data.
    Data(u32),
    /// The descriptor of a slot.
    Slot(u32),
}

impl Attributes {
    fn word(&mut self, word: u32) -> &mut Attributes {
        self.bytes.extend(word.to_le_bytes());
        self
    }

    fn wide(&mut self, word: u64) -> &mut Attributes {
        self.bytes.extend(word.to_le_bytes());
        self
    }

    /// The address of data; 0 for none.
    fn data(&mut self, data: Option<u32>) -> &mut Attributes {
        let at = self.bytes.len() as u32;
        self.places.extend(data.map(|data| (at, Place::Data(data))));
        self.wide(0)
    }

    /// A descriptor; 0 for none.
    fn slot(&mut self, slot: Option<u32>) -> &mut Attributes {
        let at = self.bytes.len() as u32;
        self.places.extend(slot.map(|slot| (at, Place::Slot(slot))));
        self.word(0)
    }

    fn name(&mut self, name: &str) -> &mut Attributes {
        let mut bytes = [0; 16];
        for (place, byte) in bytes.iter_mut().take(15).zip(name.bytes()) {
            *place = byte;
        }
        self.bytes.extend(bytes);
        self
    }
}

/// A plan that is made.
#[derive(Default)]
struct Plan {
    operations: Vec<u8>,
    data: Vec<u8>,
    /// Places in the operations that have offsets in the data.
    offsets: Vec<usize>,
    /// The BTF that is loaded.
    btf: Option<Arc<Btf<'static>>>,
    /// Release of the kernel, if the image says it.
    release: Option<Release>,
    next_slot: u32,
}

/// Kinds of types that libbpf takes out of the BTF of a program for kernels of older releases.
const NEWER_KINDS: &[(Kind, Release)] = &[
    (
        Kind::Float,
        Release {
            major: 5,
            minor: 13,
        },
    ),
    (
        Kind::DeclTag,
        Release {
            major: 5,
            minor: 16,
        },
    ),
    (
        Kind::TypeTag,
        Release {
            major: 5,
            minor: 17,
        },
    ),
];

/// The plan for programs on a kernel of a release, and for each whether it is asked about.
pub(super) fn make(
    programs: &[&Program],
    release: Option<Release>,
    options: &AskOptions,
) -> (Vec<u8>, Vec<Result<(), NotAsked>>) {
    let mut plan = Plan {
        release,
        ..Plan::default()
    };
    let asked = programs.iter().enumerate().map(|(at, program)| {
        let target = program.attach_target();
        if target.is_some_and(|target| target.program.is_some()) {
            return Err(NotAsked::Target);
        }
        if !program.modules().is_empty() {
            return Err(NotAsked::Module);
        }
        if program.maps().len() * 2 + 8 > SLOTS as usize {
            return Err(NotAsked::Maps);
        }
        plan.program(at as u32, program, options);
        Ok(())
    });
    let asked = asked.collect();
    (plan.finish(), asked)
}

impl Plan {
    fn finish(mut self) -> Vec<u8> {
        self.operation(0, &[]);
        let start = 16 + self.operations.len() as u32;
        for at in &self.offsets {
            let place = &mut self.operations[*at..*at + 4];
            let offset = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            place.copy_from_slice(&(start + offset).to_le_bytes());
        }
        let mut plan = b"bbxplan1".to_vec();
        plan.extend(LOG_SIZE.to_le_bytes());
        plan.extend([0; 4]);
        plan.extend(&self.operations);
        plan.extend(&self.data);
        plan
    }

    /// Adds data; its offset.
    fn add(&mut self, bytes: &[u8]) -> u32 {
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        let at = self.data.len() as u32;
        self.data.extend(bytes);
        at
    }

    /// Adds an operation, and returns where its words begin.
    fn operation(&mut self, kind: u32, words: &[u32]) -> usize {
        let len = (8 + 4 * words.len()).next_multiple_of(8);
        self.operations.extend(kind.to_le_bytes());
        self.operations.extend((len as u32).to_le_bytes());
        let start = self.operations.len();
        for word in words {
            self.operations.extend(word.to_le_bytes());
        }
        self.operations.resize(start - 8 + len, 0);
        start
    }

    /// Adds an operation whose last part are attributes.
    fn with_attributes(&mut self, kind: u32, words: &[u32], attributes: &Attributes) {
        let mut all = words.to_vec();
        all.extend([
            attributes.bytes.len() as u32,
            attributes.places.len() as u32,
        ]);
        let mut offsets = Vec::new();
        for (at, place) in &attributes.places {
            let (kind, value) = match place {
                Place::Data(value) => (1, value),
                Place::Slot(value) => (2, value),
            };
            if kind == 1 {
                offsets.push(all.len() + 2);
            }
            all.extend([*at, kind, *value]);
        }
        let bytes = attributes.bytes.chunks(4);
        all.extend(bytes.map(|word| {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            u32::from_le_bytes(bytes)
        }));
        let start = self.operation(kind, &all);
        self.offsets.extend(offsets.iter().map(|at| start + 4 * at));
    }

    fn call(&mut self, command: u32, slot: u32, attributes: &Attributes) {
        self.with_attributes(CALL, &[command, slot], attributes);
    }

    fn slot(&mut self) -> u32 {
        self.next_slot += 1;
        self.next_slot
    }

    /// Loads a program with its BTF and maps.
    fn program(&mut self, id: u32, program: &Program, options: &AskOptions) {
        self.load_btf(program.btf());
        let mut maps: Vec<Option<u32>> = vec![None; program.maps().len()];
        let used = program.used_maps();
        for map in &used {
            self.map(program, &mut maps, map.0 as usize);
        }
        let insns = self.insns(program, &maps);
        let license = self.add(&[program.license().as_bytes(), &[0]].concat());
        let func_info = program.func_info().iter();
        let func_info: Vec<u8> = func_info
            .flat_map(|record| [record.insn, record.type_id.0])
            .flat_map(u32::to_le_bytes)
            .collect();
        let line_info = program.line_info().iter();
        let line_info: Vec<u8> = line_info
            .flat_map(|record| {
                let place = record.line << 10 | record.column;
                [record.insn, record.file.0, record.text.0, place]
            })
            .flat_map(u32::to_le_bytes)
            .collect();
        let has_btf = program.btf().is_some();
        let mut records = |bytes: &[u8]| (has_btf && !bytes.is_empty()).then(|| self.add(bytes));
        let (func_records, line_records) = (records(&func_info), records(&line_info));
        let count = |records: Option<u32>, bytes: usize, size: usize| match records {
            Some(_) => ((bytes / size) as u32, size as u32),
            None => (0, 0),
        };
        let (func_count, func_size) = count(func_records, func_info.len(), 8);
        let (line_count, line_size) = count(line_records, line_info.len(), 16);
        let mut attributes = Attributes::default();
        attributes
            .word(program.kind().number())
            .word(program.insns().len() as u32)
            .data(Some(insns))
            .data(Some(license))
            .word(0)
            .word(0)
            .wide(0)
            .word(program.kernel_version())
            .word(program.flags().0)
            .name(program.name())
            .word(0)
            .word(program.expected_attach_type())
            .slot(has_btf.then_some(BTF_SLOT))
            .word(func_size)
            .data(func_records)
            .word(func_count)
            .word(line_size)
            .data(line_records)
            .word(line_count)
            .word(program.attach_target().map_or(0, |target| target.btf_id.0));
        const STATISTICS: u32 = 4;
        let (levels, most) = match options.log_level {
            0 => ([STATISTICS, 1 | STATISTICS], SHORT_LOG),
            level => ([level | STATISTICS; 2], LOG_SIZE),
        };
        let needs = used.iter().filter_map(|map| maps[map.0 as usize]);
        let needs: Vec<u32> = needs.collect();
        let btf = if has_btf { BTF_SLOT } else { NONE };
        let mut words = vec![id, levels[0], levels[1], most, btf, needs.len() as u32];
        words.extend(&needs);
        self.with_attributes(LOAD, &words, &attributes);
        for slot in 1..=self.next_slot {
            self.operation(CLOSE, &[slot]);
        }
        self.next_slot = BTF_SLOT;
    }

    fn load_btf(&mut self, btf: Option<&Arc<Btf<'static>>>) {
        let Some(btf) = btf else {
            return;
        };
        let known = self.btf.as_ref();
        if known.is_some_and(|known| Arc::ptr_eq(known, btf) || known.as_bytes() == btf.as_bytes())
        {
            return;
        }
        self.btf = Some(btf.clone());
        self.operation(CLOSE, &[BTF_SLOT]);
        let lacks = |kind: Kind| {
            let since = NEWER_KINDS.iter().find(|(newer, _)| *newer == kind);
            let since = since.zip(self.release);
            since.is_some_and(|((_, since), own)| own < *since)
        };
        let mut loaded = Btf::to_owned(btf);
        loaded.replace_kinds(lacks);
        let bytes = self.add(loaded.as_bytes());
        let mut attributes = Attributes::default();
        attributes
            .data(Some(bytes))
            .wide(0)
            .word(loaded.as_bytes().len() as u32)
            .word(0)
            .word(0);
        self.call(BTF_LOAD, BTF_SLOT, &attributes);
    }

    /// The instructions, with descriptors of maps in place of indices.
    fn insns(&mut self, program: &Program, maps: &[Option<u32>]) -> u32 {
        let loads: Vec<_> = program.map_loads().collect();
        let mut bytes = Vec::with_capacity(8 * program.insns().len());
        let mut patches = Vec::new();
        for (at, insn) in program.insns().iter().enumerate() {
            let mut regs = insn.regs;
            if let Some((_, map, load)) = loads.iter().find(|(place, ..)| *place == at) {
                let named = match load {
                    PseudoLoad::MapIdx | PseudoLoad::MapFd => PseudoLoad::MapFd,
                    PseudoLoad::MapIdxValue | PseudoLoad::MapValue => PseudoLoad::MapValue,
                    other => *other,
                };
                regs = (named as u8) << 4 | insn.dst();
                let slot = maps.get(map.0 as usize).copied().flatten();
                patches.extend(slot.map(|slot| (8 * at as u32 + 4, slot)));
            }
            bytes.extend([insn.code, regs]);
            bytes.extend(insn.off.to_le_bytes());
            bytes.extend(insn.imm.to_le_bytes());
        }
        let start = self.add(&bytes);
        for (at, slot) in patches {
            let place = self.operation(PATCH, &[start + at, slot]);
            self.offsets.push(place);
        }
        start
    }

    /// Creates a map with its contents, and before it the maps that it holds.
    fn map(&mut self, program: &Program, maps: &mut [Option<u32>], index: usize) {
        let Some(def) = program.maps().get(index).filter(|_| maps[index].is_none()) else {
            return;
        };
        let def = def.clone();
        let has_btf = program.btf().is_some();
        let inner = def
            .inner
            .as_deref()
            .map(|inner| self.create(inner, has_btf, None));
        let slot = self.create(&def, has_btf, inner);
        maps[index] = Some(slot);
        match &def.contents {
            InitialContents::Value { image, .. } => self.update(slot, 0, &image.to_vec()),
            InitialContents::JumpTable(targets) => {
                for (at, target) in (0..).zip(targets) {
                    let mut value = vec![0; def.params.value_size as usize];
                    value[..4].copy_from_slice(&target.to_le_bytes());
                    self.update(slot, at, &value);
                }
            }
            InitialContents::Entries(entries) => {
                for (at, entry) in entries {
                    let MapEntry::Map(held) = entry else {
                        continue;
                    };
                    let held = held.0 as usize;
                    let is_plain =
                        |def: &Arc<MapDef>| !def.kind().is_some_and(MapKind::is_map_of_maps);
                    if program.maps().get(held).is_some_and(is_plain) {
                        self.map(program, maps, held);
                    }
                    if let Some(Some(held)) = maps.get(held) {
                        let value = self.add(&[0; 4]);
                        let place = self.operation(PATCH, &[value, *held]);
                        self.offsets.push(place);
                        self.update_from(slot, *at, value);
                    }
                }
            }
            InitialContents::Arena { image, offset } => {
                self.write_arena(&def, slot, *offset, &image.to_vec())
            }
            InitialContents::StructOps { .. } => {}
        }
        if def.is_frozen() {
            let mut attributes = Attributes::default();
            attributes.slot(Some(slot));
            self.call(MAP_FREEZE, NONE, &attributes);
        }
    }

    /// Creates a map; with types first, and without where the kernel refuses these.
    fn create(&mut self, def: &MapDef, has_btf: bool, inner: Option<u32>) -> u32 {
        let slot = self.slot();
        let params = &def.params;
        let extra = match params.kind() {
            Some(MapKind::Arena) => params.arena_start(),
            _ => params.extra,
        };
        let kernel_value = def.kernel_value.map_or(0, |value| value.id.0);
        let is_typed = has_btf && (def.has_btf || def.kernel_value.is_some());
        let attempts: &[bool] = match is_typed && def.kernel_value.is_none() {
            true => &[true, false],
            false if is_typed => &[true],
            false => &[false],
        };
        for is_typed in attempts {
            let (key_type, value_type) = match is_typed {
                true => (params.key_type.0, params.value_type.0),
                false => (0, 0),
            };
            let mut attributes = Attributes::default();
            attributes
                .word(params.map_type)
                .word(params.key_size)
                .word(params.value_size)
                .word(params.max_entries)
                .word(params.flags.0)
                .slot(inner)
                .word(params.numa_node)
                .name(&def.kernel_name)
                .word(def.ifindex)
                .slot(is_typed.then_some(BTF_SLOT))
                .word(key_type)
                .word(value_type)
                .word(kernel_value)
                .wide(extra);
            self.call(MAP_CREATE, slot, &attributes);
        }
        slot
    }

    fn update(&mut self, map: u32, key: u32, value: &[u8]) {
        let value = self.add(value);
        self.update_from(map, key, value);
    }

    fn update_from(&mut self, map: u32, key: u32, value: u32) {
        let key = self.add(&key.to_le_bytes());
        let mut attributes = Attributes::default();
        attributes
            .slot(Some(map))
            .word(0)
            .data(Some(key))
            .data(Some(value))
            .wide(0);
        self.call(MAP_UPDATE, NONE, &attributes);
    }

    fn write_arena(&mut self, def: &MapDef, slot: u32, offset: u64, bytes: &[u8]) {
        let data = self.add(bytes);
        let size = u64::from(def.params.max_entries) * 4096;
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let mut words = vec![slot, data, bytes.len() as u32, 0];
        words.extend(halves(size));
        words.extend(halves(def.params.arena_start()));
        words.extend(halves(offset));
        let place = self.operation(ARENA, &words);
        self.offsets.push(place + 4);
    }
}
