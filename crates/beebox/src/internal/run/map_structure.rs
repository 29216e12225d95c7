//! A map as programs read it through the pointer to it: the kernel's structure of its kind, which
//! begins with a `struct bpf_map`. The members that follow from the map's definition are set, the
//! others are zero.

use ::kernel::maps::{Arena, Map};
use btf::{Btf, Kind};
use spec::maps::{MapFlags, MapKind};
use vm::ArenaObject as _;

use super::task::member_of;

/// A member, and its value.
struct Member {
    /// Structure that has it; all maps begin with a `struct bpf_map`.
    structure: &'static str,
    name: &'static str,
    value: fn(&Described<'_>) -> u64,
}

/// A map with what its structure says beside its definition.
struct Described<'m> {
    map: &'m Map,
    id: u32,
    /// Bytes of the header of an entry of a hash table (`struct htab_elem`).
    entry_header: u64,
}

const MAP: &str = "bpf_map";

const MEMBERS: &[Member] = &[
    member(MAP, "map_type", |it| it.map.params().map_type.into()),
    member(MAP, "key_size", |it| it.map.params().key_size.into()),
    member(MAP, "value_size", |it| it.map.params().value_size.into()),
    member(MAP, "max_entries", |it| it.map.params().max_entries.into()),
    member(MAP, "map_extra", |it| it.map.params().extra),
    member(MAP, "map_flags", |it| it.flags()),
    member(MAP, "id", |it| it.id.into()),
    member(MAP, "numa_node", |it| it.node()),
    member("bpf_array", "elem_size", |it| {
        eights(it.map.params().value_size)
    }),
    member("bpf_array", "index_mask", |it| {
        powers(it.map.params().max_entries) - 1
    }),
    member("bpf_htab", "n_buckets", |it| {
        powers(it.map.params().max_entries)
    }),
    member("bpf_htab", "elem_size", |it| it.entry_size()),
    member("lpm_trie", "data_size", |it| it.prefix_bytes()),
    member("lpm_trie", "max_prefixlen", |it| 8 * it.prefix_bytes()),
    member("bpf_queue_stack", "size", |it| {
        u64::from(it.map.params().max_entries) + 1
    }),
    member("bpf_arena", "user_vm_start", |it| it.user()[0]),
    member("bpf_arena", "user_vm_end", |it| it.user()[1]),
];

const fn member(
    structure: &'static str,
    name: &'static str,
    value: fn(&Described<'_>) -> u64,
) -> Member {
    Member {
        structure,
        name,
        value,
    }
}

impl Described<'_> {
    /// Linux has programs only read the values of maps of devices.
    fn flags(&self) -> u64 {
        let own = self.map.kind().added_flags();
        self.map.params().flags.with(own).0.into()
    }

    /// `NUMA_NO_NODE` if none is stated.
    fn node(&self) -> u64 {
        let params = self.map.params();
        match params.flags.0 & MapFlags::NUMA_NODE.0 {
            0 => u64::from(u32::MAX),
            _ => params.numa_node.into(),
        }
    }

    /// Header, key, and value or the pointer to the values of all CPUs.
    fn entry_size(&self) -> u64 {
        let params = self.map.params();
        let value = match self.map.kind().is_percpu() {
            true => 8,
            false => eights(params.value_size),
        };
        self.entry_header + eights(params.key_size) + value
    }

    /// Bytes of a key behind the length of its prefix.
    fn prefix_bytes(&self) -> u64 {
        u64::from(self.map.params().key_size.saturating_sub(4))
    }

    /// First address of an arena in user space, and the one behind the last.
    fn user(&self) -> [u64; 2] {
        self.map.of_kind::<Arena>().map_or([0; 2], |arena| {
            let start = arena.user_start();
            [start, start.wrapping_add(arena.bytes())]
        })
    }
}

/// Bytes in whole words.
fn eights(bytes: u32) -> u64 {
    u64::from(bytes).next_multiple_of(8)
}

/// The power of two that is not below a number of entries.
fn powers(entries: u32) -> u64 {
    u64::from(entries).next_power_of_two()
}

/// Places of the members that are set, in the kernel's types.
#[derive(Clone, Debug)]
pub(super) struct MapLayout {
    /// Bytes of structures, by name.
    sizes: Vec<(&'static str, usize)>,
    /// Offset and size of each of [`MEMBERS`].
    places: Vec<Option<(usize, usize)>>,
    /// Offset and size of the name.
    name: Option<(usize, usize)>,
    entry_header: u64,
}

impl MapLayout {
    /// That of a kernel's types, if they have maps.
    pub(super) fn of(types: &Btf<'_>) -> Option<MapLayout> {
        let map = types.find(Kind::Struct, MAP)?;
        let mut sizes: Vec<(&'static str, usize)> = Vec::new();
        for name in MapKind::ALL
            .iter()
            .map(|kind| kind.structure())
            .chain([MAP])
        {
            let found = types.find(Kind::Struct, name);
            let size = found.and_then(|found| types.size_of(found.id()));
            if let Some(size) = size.filter(|_| sizes.iter().all(|(known, _)| *known != name)) {
                sizes.push((name, size as usize));
            }
        }
        let place = |member: &Member| {
            let structure = types.find(Kind::Struct, member.structure)?;
            member_of(types, structure, member.name, 1)
        };
        let header = types.find(Kind::Struct, "htab_elem");
        let header = header.and_then(|header| types.size_of(header.id()));
        Some(MapLayout {
            sizes,
            places: MEMBERS.iter().map(place).collect(),
            name: member_of(types, map, "name", 0),
            entry_header: header.map_or(0, u64::from),
        })
    }

    /// The structure of a map with its id and its name, which is empty for maps in maps.
    pub(super) fn structure(&self, map: &Map, id: u32, name: &str) -> Vec<u8> {
        let own = map.kind().structure();
        let size_of = |name| {
            let mut sizes = self.sizes.iter();
            sizes.find_map(|(known, size)| (*known == name).then_some(*size))
        };
        let mut structure = vec![0; size_of(own).or(size_of(MAP)).unwrap_or(0)];
        let described = Described {
            map,
            id,
            entry_header: self.entry_header,
        };
        let mut put = |place: Option<(usize, usize)>, bytes: &[u8]| {
            let range = place.and_then(|(at, size)| structure.get_mut(at..at + size));
            for (to, from) in range.into_iter().flatten().zip(bytes) {
                *to = *from;
            }
        };
        for (member, place) in MEMBERS.iter().zip(&self.places) {
            if member.structure == MAP || member.structure == own {
                put(*place, &(member.value)(&described).to_le_bytes());
            }
        }
        // The last byte is its end.
        let len = self.name.map_or(0, |(_, size)| size.saturating_sub(1));
        put(self.name, &name.as_bytes()[..len.min(name.len())]);
        structure
    }
}
