//! Random maps and operations.

use std::fmt;

use btf::TypeId;
use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::{Random, SplitMix};

use super::descriptors;
use super::objects::Objects;

/// The kinds of map that are compared.
pub const KINDS: [MapKind; 33] = [
    MapKind::Array,
    MapKind::PercpuArray,
    MapKind::Hash,
    MapKind::PercpuHash,
    MapKind::LruHash,
    MapKind::LruPercpuHash,
    MapKind::LpmTrie,
    MapKind::Queue,
    MapKind::Stack,
    MapKind::BloomFilter,
    MapKind::ProgArray,
    MapKind::PerfEventArray,
    MapKind::ArrayOfMaps,
    MapKind::HashOfMaps,
    MapKind::Devmap,
    MapKind::DevmapHash,
    MapKind::Cpumap,
    MapKind::Xskmap,
    MapKind::Ringbuf,
    MapKind::UserRingbuf,
    MapKind::StackTrace,
    MapKind::CgroupArray,
    MapKind::CgroupStorage,
    MapKind::PercpuCgroupStorage,
    MapKind::ReuseportSockarray,
    MapKind::Sockmap,
    MapKind::Sockhash,
    MapKind::SkStorage,
    MapKind::InodeStorage,
    MapKind::TaskStorage,
    MapKind::CgrpStorage,
    MapKind::Arena,
    MapKind::StructOps,
];

/// The kinds without element operations that succeed: all that can be compared is errors.
pub const WITHOUT_ELEMENTS: [MapKind; 10] = [
    MapKind::PerfEventArray,
    MapKind::Xskmap,
    MapKind::Ringbuf,
    MapKind::UserRingbuf,
    MapKind::StackTrace,
    MapKind::CgroupStorage,
    MapKind::PercpuCgroupStorage,
    MapKind::ReuseportSockarray,
    MapKind::TaskStorage,
    MapKind::Arena,
];

/// The kinds of which the kernel makes no map here: only the errors of creation are compared.
pub const NOT_MADE: [MapKind; 1] = [MapKind::StructOps];

/// Pages of the largest arena.
const ARENA_PAGES: u32 = 1 << 20;

fn is_local_storage(kind: MapKind) -> bool {
    use MapKind::{CgrpStorage, InodeStorage, SkStorage, TaskStorage};
    matches!(kind, SkStorage | InodeStorage | TaskStorage | CgrpStorage)
}

/// Parameters of a map, printed in one line.
#[derive(Clone, Copy, Debug)]
pub struct Shape(pub MapParams);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MapParams {
            map_type,
            key_size,
            value_size,
            max_entries,
            flags,
            extra,
            ..
        } = self.0;
        let kind = MapKind::from_number(map_type).map_or("unknown", super::name);
        write!(
            f,
            "{kind} key {key_size} value {value_size} entries {max_entries} flags {:#x} extra {extra}",
            flags.0
        )
    }
}

/// Random choices.
pub(super) struct Dice(SplitMix);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(SplitMix::new(seed))
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        self.0.next_u32() % limit.max(1)
    }

    pub(super) fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.0.next_u32() as u8).collect()
    }
}

/// Parameters that may break any rule of creation.
pub(super) fn any_shape(dice: &mut Dice) -> Shape {
    let sizes = [
        0, 1, 3, 4, 5, 8, 12, 16, 20, 260, 261, 512, 4096, 32768, 32769,
    ];
    let huge = [
        (4 << 20) - 48,
        (4 << 20) - 49,
        4 << 20,
        (4 << 20) + 1,
        i32::MAX as u32,
        u32::MAX,
    ];
    let size = |dice: &mut Dice| match dice.one_in(12) {
        true => dice.pick(&huge),
        false => dice.pick(&sizes),
    };
    let kind = dice.pick(&KINDS);
    let key_size = match dice.one_in(3) {
        true => size(dice),
        false => usual_key_size(kind, dice),
    };
    let mut flags = usual_flags(kind);
    for _ in 0..dice.below(3) {
        flags ^= 1 << dice.below(20);
    }
    let value_size = match dice.one_in(2) {
        // The sizes have to be those of types.
        _ if is_local_storage(kind) => usual_value_size(kind, dice),
        true => size(dice),
        false => usual_value_size(kind, dice),
    };
    let (key_type, value_type) = types(kind, value_size, dice.one_in(8));
    Shape(MapParams {
        map_type: kind as u32,
        key_size,
        value_size,
        key_type,
        value_type,
        max_entries: match kind {
            MapKind::Ringbuf | MapKind::UserRingbuf => {
                dice.pick(&[0, 1, 4095, 4096, 8192, 12288, 1 << 16])
            }
            MapKind::Arena => dice.pick(&[0, 1, 2, ARENA_PAGES, ARENA_PAGES + 1, u32::MAX]),
            kind if is_local_storage(kind) => dice.pick(&[0, 0, 0, 0, 1]),
            MapKind::CgroupStorage | MapKind::PercpuCgroupStorage => dice.pick(&[0, 0, 0, 1]),
            MapKind::StructOps => dice.pick(&[0, 1, 1, 2]),
            MapKind::Cpumap => dice.pick(&[0, 1, 2, 256, 257, u32::MAX]),
            _ => dice.pick(&[0, 1, 2, 7, 64]),
        },
        flags: MapFlags(flags),
        extra: match (kind, dice.one_in(8)) {
            (MapKind::Arena, _) => dice.pick(&[0, 1, 4096, 0xffff_f000, 1 << 44, u64::MAX << 12]),
            (_, true) => dice.pick(&[1, 15, 16]),
            (_, false) => 0,
        },
        ..MapParams::default()
    })
}

/// Types of keys and values, of kinds that have to have them.
fn types(kind: MapKind, value_size: u32, are_left_out: bool) -> (TypeId, TypeId) {
    let typed = is_local_storage(kind) && !are_left_out;
    let types = typed.then(|| descriptors::types_of(value_size)).flatten();
    types.unwrap_or((TypeId::VOID, TypeId::VOID))
}

/// Parameters of a map that can be created.
pub(super) fn usual_shape(kind: MapKind, dice: &mut Dice) -> Shape {
    let mut flags = usual_flags(kind);
    if matches!(kind, MapKind::Hash | MapKind::PercpuHash) && dice.one_in(2) {
        flags |= MapFlags::NO_PREALLOC.0;
    }
    let max_entries = match kind {
        MapKind::Ringbuf | MapKind::UserRingbuf => 4096,
        MapKind::CgroupStorage | MapKind::PercpuCgroupStorage => 0,
        kind if is_local_storage(kind) => 0,
        _ => dice.pick(&[1, 2, 5, 16, 64, 200]),
    };
    let (key_size, value_size) = (usual_key_size(kind, dice), usual_value_size(kind, dice));
    let value_size = match is_local_storage(kind) {
        true => value_size.min(100),
        false => value_size,
    };
    let (key_type, value_type) = types(kind, value_size, false);
    Shape(MapParams {
        map_type: kind as u32,
        key_size,
        value_size,
        key_type,
        value_type,
        max_entries,
        flags: MapFlags(flags),
        ..MapParams::default()
    })
}

fn usual_value_size(kind: MapKind, dice: &mut Dice) -> u32 {
    use MapKind::{
        Arena, ArrayOfMaps, CgroupArray, Cpumap, Devmap, DevmapHash, HashOfMaps, PerfEventArray,
        ProgArray, ReuseportSockarray, Ringbuf, Sockhash, Sockmap, StackTrace, StructOps,
        UserRingbuf, Xskmap,
    };
    match kind {
        ProgArray | PerfEventArray | CgroupArray | ArrayOfMaps | HashOfMaps | Xskmap
        | StructOps => 4,
        Devmap | DevmapHash | Cpumap | ReuseportSockarray | Sockmap | Sockhash => {
            dice.pick(&[4, 8])
        }
        Ringbuf | UserRingbuf | Arena => 0,
        StackTrace => dice.pick(&[8, 64, 1016]),
        kind if is_local_storage(kind) => dice.pick(&descriptors::TYPED_SIZES),
        _ => dice.pick(&[1, 2, 4, 7, 8, 12, 16, 40, 100]),
    }
}

/// True if keys are indexes or numbers of 4 bytes.
fn has_number_keys(kind: MapKind) -> bool {
    use MapKind::{
        Array, ArrayOfMaps, CgroupArray, Cpumap, Devmap, DevmapHash, PercpuArray, PerfEventArray,
        ProgArray, ReuseportSockarray, Sockmap, StackTrace, StructOps, Xskmap,
    };
    matches!(
        kind,
        Array
            | CgroupArray
            | ReuseportSockarray
            | Sockmap
            | StackTrace
            | StructOps
            | PercpuArray
            | ProgArray
            | PerfEventArray
            | ArrayOfMaps
            | Devmap
            | DevmapHash
            | Cpumap
            | Xskmap
    )
}

fn usual_key_size(kind: MapKind, dice: &mut Dice) -> u32 {
    match kind {
        kind if has_number_keys(kind) => 4,
        kind if is_local_storage(kind) => 4,
        MapKind::Queue
        | MapKind::Stack
        | MapKind::BloomFilter
        | MapKind::Ringbuf
        | MapKind::UserRingbuf
        | MapKind::Arena => 0,
        MapKind::CgroupStorage | MapKind::PercpuCgroupStorage => dice.pick(&[8, 16]),
        MapKind::LpmTrie => 4 + dice.pick(&[1, 2, 3, 4, 8, 9, 16]),
        _ => dice.pick(&[1, 2, 4, 5, 8, 12, 16, 33]),
    }
}

fn usual_flags(kind: MapKind) -> u32 {
    match kind {
        MapKind::LpmTrie => MapFlags::NO_PREALLOC.0,
        MapKind::Arena => MapFlags::MMAPABLE.0,
        kind if is_local_storage(kind) => MapFlags::NO_PREALLOC.0,
        _ => 0,
    }
}

/// An operation of bpf(2).
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Lookup(Vec<u8>, u64),
    Update(Vec<u8>, Vec<u8>, u64),
    Delete(Vec<u8>),
    Take(Vec<u8>, u64),
    NextKey(Option<Vec<u8>>),
    UpdateBatch(Vec<u8>, Vec<u8>),
    DeleteBatch(Vec<u8>),
    LookupBatch {
        from: Option<Vec<u8>>,
        count: u32,
        delete: bool,
    },
}

/// A random operation on a map of these parameters, whose values have `value_len` bytes.
pub(super) fn operation(
    shape: &Shape,
    value_len: usize,
    objects: &Objects,
    dice: &mut Dice,
) -> Operation {
    let kind = MapKind::from_number(shape.0.map_type);
    let key = |dice: &mut Dice| {
        let named = kind.and_then(|kind| objects.key(kind, dice));
        named.unwrap_or_else(|| key(shape, dice))
    };
    let value = |dice: &mut Dice| {
        let named = kind.and_then(|kind| objects.value(kind, value_len, dice));
        named.unwrap_or_else(|| dice.bytes(value_len))
    };
    let flags = |dice: &mut Dice| match dice.below(8) {
        0 => 1,
        1 => 2,
        2 if dice.one_in(6) => dice.pick(&[3, 4, 5, 8, 1 << 32, u64::MAX]),
        _ => 0,
    };
    match dice.below(21) {
        0..=4 => Operation::Lookup(key(dice), if dice.one_in(40) { 4 } else { 0 }),
        5..=11 => {
            let value = value(dice);
            Operation::Update(key(dice), value, flags(dice))
        }
        12..=14 => Operation::Delete(key(dice)),
        15 | 16 => Operation::Take(key(dice), if dice.one_in(20) { flags(dice) } else { 0 }),
        17 => Operation::NextKey((!dice.one_in(4)).then(|| key(dice))),
        // There are no batches without keys.
        18.. if shape.0.key_size == 0 => Operation::NextKey(None),
        18 => {
            let count = 1 + dice.below(5);
            let keys = (0..count).flat_map(|_| key(dice)).collect();
            let values = (0..count).flat_map(|_| value(dice)).collect();
            Operation::UpdateBatch(keys, values)
        }
        19 => Operation::LookupBatch {
            from: dice.one_in(2).then(|| key(dice)),
            count: 1 + dice.below(20),
            delete: dice.one_in(20),
        },
        _ => {
            let count = 1 + dice.below(5);
            Operation::DeleteBatch((0..count).flat_map(|_| key(dice)).collect())
        }
    }
}

/// A key of a small universe, so that operations meet.
fn key(shape: &Shape, dice: &mut Dice) -> Vec<u8> {
    let MapParams {
        key_size,
        max_entries,
        map_type,
        ..
    } = shape.0;
    let size = key_size as usize;
    let number = dice.below((max_entries + max_entries / 4 + 2).min(260));
    match MapKind::from_number(map_type) {
        Some(MapKind::LpmTrie) => {
            let bits = (key_size - 4) * 8;
            let beyond = if dice.one_in(30) { 3 } else { 1 };
            let len = dice.below(bits + beyond);
            let mut bytes = len.to_ne_bytes().to_vec();
            // Few values of each byte, so that prefixes share paths.
            bytes.extend((4..size).map(|_| dice.pick(&[0, 1, 0x80, 0xc0, 0xff])));
            bytes
        }
        Some(kind) if has_number_keys(kind) => number.to_ne_bytes().to_vec(),
        _ => (0..size)
            .map(|at| (number as usize * (at + 1)) as u8 ^ (at > 0) as u8)
            .collect(),
    }
}
