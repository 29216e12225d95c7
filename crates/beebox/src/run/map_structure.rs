//! A map as programs read it through the pointer to it: a `struct bpf_map` of the kernel, or
//! the structure of an arena that begins with one, in which the members that state the map's
//! definition and the arena's addresses are set, the others are zero.

use ::kernel::maps::Map;
use btf::{Btf, Kind};
use vm::ArenaObject as _;

use super::task::member_of;

/// Offset and size in bytes of a member.
type Place = Option<(usize, usize)>;

/// Places of the members that are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapLayout {
    size: usize,
    arena_size: usize,
    map_type: Place,
    key_size: Place,
    value_size: Place,
    max_entries: Place,
    map_extra: Place,
    map_flags: Place,
    /// First address of an arena in user space, and the one behind the last.
    user: [Place; 2],
}

impl MapLayout {
    /// That of a kernel's types, if they have maps.
    pub(super) fn of(types: &Btf<'_>) -> Option<MapLayout> {
        let map = types.find(Kind::Struct, "bpf_map")?;
        let arena = types.find(Kind::Struct, "bpf_arena");
        let size = types.size_of(map.id())? as usize;
        let place = |name| member_of(types, map, name, 0);
        let of_arena = |name| member_of(types, arena?, name, 0);
        let arena_size = arena.and_then(|arena| types.size_of(arena.id()));
        Some(MapLayout {
            size,
            arena_size: arena_size.map_or(size, |size| size as usize),
            map_type: place("map_type"),
            key_size: place("key_size"),
            value_size: place("value_size"),
            max_entries: place("max_entries"),
            map_extra: place("map_extra"),
            map_flags: place("map_flags"),
            user: ["user_vm_start", "user_vm_end"].map(of_arena),
        })
    }

    /// The structure of a map.
    pub(super) fn structure(&self, map: &Map) -> Vec<u8> {
        let params = map.params();
        let arena = map.operations().arena();
        let mut structure = vec![
            0;
            if arena.is_some() {
                self.arena_size
            } else {
                self.size
            }
        ];
        let mut put = |place: Place, value: u64| {
            let range = place.and_then(|(at, size)| structure.get_mut(at..at + size));
            if let Some(range) = range {
                for (to, from) in range.iter_mut().zip(value.to_le_bytes()) {
                    *to = from;
                }
            }
        };
        put(self.map_type, params.map_type.into());
        put(self.key_size, params.key_size.into());
        put(self.value_size, params.value_size.into());
        put(self.max_entries, params.max_entries.into());
        put(self.map_extra, params.extra);
        put(self.map_flags, params.flags.0.into());
        if let Some(arena) = arena {
            let start = arena.user_start();
            put(self.user[0], start);
            put(self.user[1], start.wrapping_add(arena.bytes()));
        }
        structure
    }
}
