//! Map kinds (`enum bpf_map_type`) and flags of `BPF_MAP_CREATE`: numbers and names
//! (`include/uapi/linux/bpf.h`; names of kinds are bpftool's).

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal, [$($trait:ident)*];)*) => {
        /// Kind of map (`enum bpf_map_type`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum MapKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl MapKind {
            /// Every kind, by number.
            pub const ALL: &'static [MapKind] = &[$(MapKind::$kind,)*];

            /// Kind with this number.
            pub const fn from_number(number: u32) -> Option<MapKind> {
                Some(match number {
                    $($number => MapKind::$kind,)*
                    _ => return None,
                })
            }

            /// Name in bpftool's listings.
            pub const fn name(self) -> &'static str {
                match self {
                    $(MapKind::$kind => $name,)*
                }
            }

            const fn has(self, one: Trait) -> bool {
                let traits = match self {
                    $(MapKind::$kind => 0 $(| 1 << Trait::$trait as u32)*,)*
                };
                traits & 1 << one as u32 != 0
            }
        }
    };
}

/// Properties of a kind beside its number and name.
#[derive(Clone, Copy)]
enum Trait {
    /// BTF may describe keys and values.
    Btf,
    /// An entry has a value for each CPU.
    Percpu,
    /// Values are maps.
    OfMaps,
    /// `max_entries` is the size of a ring in bytes.
    Ring,
    /// `bpf_for_each_map_elem` visits its elements (`map_for_each_callback`).
    ForEach,
    /// Values are sockets.
    Sockets,
    /// The least recently used entry is evicted when the map is full.
    Lru,
}

// Number, name and traits.
kinds! {
    /// Hash table.
    Hash = 1, "hash", [Btf ForEach];
    /// Array: preallocated values by index.
    Array = 2, "array", [Btf ForEach];
    /// Programs by index, for tail calls.
    ProgArray = 3, "prog_array", [Btf];
    /// Perf events by index, usually by CPU.
    PerfEventArray = 4, "perf_event_array", [];
    /// Hash table with a value for each CPU.
    PercpuHash = 5, "percpu_hash", [Btf Percpu ForEach];
    /// Array with a value for each CPU.
    PercpuArray = 6, "percpu_array", [Btf Percpu ForEach];
    /// Stack traces by identifier.
    StackTrace = 7, "stack_trace", [];
    /// Control groups by index.
    CgroupArray = 8, "cgroup_array", [];
    /// LRU hash: evicts the least recently used entry when it is full.
    LruHash = 9, "lru_hash", [Btf ForEach Lru];
    /// LRU hash with a value for each CPU.
    LruPercpuHash = 10, "lru_percpu_hash", [Btf Percpu ForEach Lru];
    /// Trie: values by longest matching prefix.
    LpmTrie = 11, "lpm_trie", [Btf];
    /// Maps by index.
    ArrayOfMaps = 12, "array_of_maps", [OfMaps];
    /// Maps by key.
    HashOfMaps = 13, "hash_of_maps", [OfMaps];
    /// Network devices by index, to redirect to.
    Devmap = 14, "devmap", [];
    /// Sockets by index.
    Sockmap = 15, "sockmap", [Sockets];
    /// CPUs to redirect to.
    Cpumap = 16, "cpumap", [];
    /// AF_XDP sockets by queue.
    Xskmap = 17, "xskmap", [];
    /// Sockets by key.
    Sockhash = 18, "sockhash", [Sockets];
    /// A value for each control group and attached program.
    CgroupStorage = 19, "cgroup_storage", [Btf];
    /// Sockets of a reuseport group by index.
    ReuseportSockarray = 20, "reuseport_sockarray", [Btf];
    /// A value for each control group, attached program and CPU.
    PercpuCgroupStorage = 21, "percpu_cgroup_storage", [Btf Percpu];
    /// FIFO queue; no keys.
    Queue = 22, "queue", [];
    /// LIFO stack; no keys.
    Stack = 23, "stack", [];
    /// Local storage of sockets.
    SkStorage = 24, "sk_storage", [Btf];
    /// Network devices by key, to redirect to.
    DevmapHash = 25, "devmap_hash", [];
    /// struct_ops: a kernel structure whose function pointers are programs.
    StructOps = 26, "struct_ops", [Btf];
    /// Ring buffer: records from programs to user space.
    Ringbuf = 27, "ringbuf", [Btf Ring];
    /// Local storage of inodes.
    InodeStorage = 28, "inode_storage", [Btf];
    /// Local storage of tasks.
    TaskStorage = 29, "task_storage", [Btf];
    /// Bloom filter: a set with false positives.
    BloomFilter = 30, "bloom_filter", [Btf];
    /// User ring buffer: records from user space to programs.
    UserRingbuf = 31, "user_ringbuf", [Btf Ring];
    /// Local storage of control groups.
    CgrpStorage = 32, "cgrp_storage", [Btf];
    /// Arena: sparse memory shared by programs and user space.
    Arena = 33, "arena", [];
    /// Instruction array: targets of indirect jumps.
    InsnArray = 34, "insn_array", [Btf];
    /// Resizable hash table.
    Rhash = 35, "rhash", [Btf];
}

impl MapKind {
    /// Number in `enum bpf_map_type`.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Name of the kernel's structure of a map, which begins with a `struct bpf_map`
    /// (`map_btf_id`).
    pub const fn structure(self) -> &'static str {
        match self {
            MapKind::Hash
            | MapKind::PercpuHash
            | MapKind::LruHash
            | MapKind::LruPercpuHash
            | MapKind::HashOfMaps => "bpf_htab",
            MapKind::Array
            | MapKind::ProgArray
            | MapKind::PerfEventArray
            | MapKind::PercpuArray
            | MapKind::CgroupArray
            | MapKind::ArrayOfMaps => "bpf_array",
            MapKind::StackTrace => "bpf_stack_map",
            MapKind::LpmTrie => "lpm_trie",
            MapKind::Devmap | MapKind::DevmapHash => "bpf_dtab",
            MapKind::Sockmap => "bpf_stab",
            MapKind::Cpumap => "bpf_cpu_map",
            MapKind::Xskmap => "xsk_map",
            MapKind::Sockhash => "bpf_shtab",
            MapKind::CgroupStorage | MapKind::PercpuCgroupStorage => "bpf_cgroup_storage_map",
            MapKind::ReuseportSockarray => "reuseport_array",
            MapKind::Queue | MapKind::Stack => "bpf_queue_stack",
            MapKind::SkStorage
            | MapKind::InodeStorage
            | MapKind::TaskStorage
            | MapKind::CgrpStorage => "bpf_local_storage_map",
            MapKind::StructOps => "bpf_struct_ops_map",
            MapKind::Ringbuf | MapKind::UserRingbuf => "bpf_ringbuf_map",
            MapKind::BloomFilter => "bpf_bloom_filter",
            MapKind::Arena => "bpf_arena",
            MapKind::InsnArray | MapKind::Rhash => "bpf_map",
        }
    }

    /// True for maps of maps.
    pub const fn is_map_of_maps(self) -> bool {
        self.has(Trait::OfMaps)
    }

    /// True for maps whose elements `bpf_for_each_map_elem` visits: hashes and arrays.
    pub const fn has_for_each(self) -> bool {
        self.has(Trait::ForEach)
    }

    /// True for maps of sockets, from which programs look up references.
    pub const fn holds_sockets(self) -> bool {
        self.has(Trait::Sockets)
    }

    /// True for maps that evict the least recently used entry when they are full. They may have more
    /// entries than they are declared with: as many for each CPU.
    pub const fn is_lru(self) -> bool {
        self.has(Trait::Lru)
    }

    /// True for ring buffers, whose `max_entries` is a size in bytes.
    pub const fn is_ring(self) -> bool {
        self.has(Trait::Ring)
    }

    /// True for maps whose entries have a value for each CPU.
    pub const fn is_percpu(self) -> bool {
        self.has(Trait::Percpu)
    }

    /// True if BTF may describe keys and values. libbpf omits it for the other kinds, as
    /// the kernel refuses it for several of them.
    pub const fn supports_btf(self) -> bool {
        self.has(Trait::Btf)
    }
}

/// Flags of `BPF_MAP_CREATE` (`map_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapFlags(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal, $name:literal;)*) => {
        impl MapFlags {
            $($(#[$doc])* pub const $flag: MapFlags = MapFlags(1 << $bit);)*

            /// Every flag with its name in C, by bit.
            pub const ALL: &'static [(MapFlags, &'static str)] =
                &[$((MapFlags::$flag, $name),)*];
        }
    };
}

flags! {
    /// Entries are allocated on insertion.
    NO_PREALLOC = 0, "BPF_F_NO_PREALLOC";
    /// Each CPU has an LRU list of its own.
    NO_COMMON_LRU = 1, "BPF_F_NO_COMMON_LRU";
    /// The map is allocated on the stated NUMA node.
    NUMA_NODE = 2, "BPF_F_NUMA_NODE";
    /// System calls only read.
    RDONLY = 3, "BPF_F_RDONLY";
    /// System calls only write.
    WRONLY = 4, "BPF_F_WRONLY";
    /// Stack traces contain build ids and offsets instead of addresses.
    STACK_BUILD_ID = 5, "BPF_F_STACK_BUILD_ID";
    /// The hash seed is zero (for tests).
    ZERO_SEED = 6, "BPF_F_ZERO_SEED";
    /// Programs only read.
    RDONLY_PROG = 7, "BPF_F_RDONLY_PROG";
    /// Programs only write.
    WRONLY_PROG = 8, "BPF_F_WRONLY_PROG";
    /// A new socket inherits a copy of its listener's value.
    CLONE = 9, "BPF_F_CLONE";
    /// User space may mmap the map.
    MMAPABLE = 10, "BPF_F_MMAPABLE";
    /// Perf events persist when the file descriptor is closed.
    PRESERVE_ELEMS = 11, "BPF_F_PRESERVE_ELEMS";
    /// Inner maps may have any number of entries.
    INNER_MAP = 12, "BPF_F_INNER_MAP";
    /// A link registers the struct_ops map.
    LINK = 13, "BPF_F_LINK";
    /// The path of a pin is relative to a directory file descriptor.
    PATH_FD = 14, "BPF_F_PATH_FD";
    /// The BTF id of the struct_ops value is of a module's BTF.
    VTYPE_BTF_OBJ_FD = 15, "BPF_F_VTYPE_BTF_OBJ_FD";
    /// A BPF token grants the privilege.
    TOKEN_FD = 16, "BPF_F_TOKEN_FD";
    /// User space gets SIGSEGV on an unallocated page of the arena.
    SEGV_ON_FAULT = 17, "BPF_F_SEGV_ON_FAULT";
    /// Arena pointers are stored without conversion to user addresses.
    NO_USER_CONV = 18, "BPF_F_NO_USER_CONV";
    /// New records overwrite old ones.
    RB_OVERWRITE = 19, "BPF_F_RB_OVERWRITE";
}

impl MapFlags {
    /// True if all of these flags are set.
    pub const fn has(self, flags: MapFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Union of both.
    #[must_use]
    pub const fn with(self, flags: MapFlags) -> MapFlags {
        MapFlags(self.0 | flags.0)
    }

    /// Names of the known flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let set = MapFlags::ALL
            .iter()
            .filter(move |(flag, _)| self.has(*flag));
        set.map(|&(_, name)| name)
    }

    /// Set bits that are no known flag.
    pub fn unknown(self) -> u32 {
        MapFlags::ALL
            .iter()
            .fold(self.0, |rest, (flag, _)| rest & !flag.0)
    }
}

/// Maximum length in bytes of a name in the kernel, without the final NUL
/// (`BPF_OBJ_NAME_LEN` - 1).
pub const MAX_NAME: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_leave_no_gap() {
        for (at, kind) in MapKind::ALL.iter().enumerate() {
            assert_eq!(kind.number() as usize, at + 1);
            assert_eq!(MapKind::from_number(kind.number()), Some(*kind));
        }
        assert_eq!(MapKind::from_number(0), None);
        assert_eq!(MapKind::from_number(MapKind::ALL.len() as u32 + 1), None);
    }

    #[test]
    fn unknown_bits_are_those_of_no_flag() {
        for (bit, (flag, _)) in MapFlags::ALL.iter().enumerate() {
            assert_eq!(flag.0, 1 << bit);
        }
        let flags = MapFlags(1 << 31)
            .with(MapFlags::MMAPABLE)
            .with(MapFlags::RDONLY_PROG);
        let names: Vec<_> = flags.names().collect();
        assert_eq!(names, ["BPF_F_RDONLY_PROG", "BPF_F_MMAPABLE"]);
        assert_eq!(flags.unknown(), 1 << 31);
    }
}
