//! Map kinds (`enum bpf_map_type`) and flags of `BPF_MAP_CREATE`: numbers and names
//! (`include/uapi/linux/bpf.h`; names of kinds are bpftool's).

use crate::since::{Since, since};

macro_rules! kinds {
    ($(
        $(#[$doc:meta])* $kind:ident = $number:literal, $name:literal, $noun:tt, $since:tt, $structure:literal,
        $capability:ident, $contents:ident $(($($of:tt)*))? $layout:ident $cpus:ident $size:ident $types:ident
        $owner:ident $nesting:ident $keys:ident $batches:ident;
    )*) => {
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

            /// What its maps are called in a sentence: one, with its article, and several.
            #[doc(hidden)]
            pub const fn noun(self) -> (&'static str, &'static str) {
                match self {
                    $(MapKind::$kind => $noun,)*
                }
            }

            /// Release that introduced the map kind.
            #[doc(hidden)]
            pub const fn since(self) -> Since {
                match self {
                    $(MapKind::$kind => since!$since,)*
                }
            }

            /// Name of the kernel's structure of a map, which begins with a `struct bpf_map`
            /// (`map_btf_id`).
            pub const fn structure(self) -> &'static str {
                match self {
                    $(MapKind::$kind => $structure,)*
                }
            }

            /// Capability that its creation needs.
            #[doc(hidden)]
            pub const fn capability(self) -> MapCapability {
                match self {
                    $(MapKind::$kind => MapCapability::$capability,)*
                }
            }

            /// Types of its keys, where BTF describes its maps.
            #[doc(hidden)]
            pub const fn key_types(self) -> KeyTypes {
                match self {
                    $(MapKind::$kind => KeyTypes::$keys,)*
                }
            }

            /// Its batch operations.
            #[doc(hidden)]
            pub const fn batches(self) -> Batches {
                match self {
                    $(MapKind::$kind => Batches::$batches,)*
                }
            }

            const fn row(self) -> Row {
                match self {
                    $(MapKind::$kind => Row {
                        contents: Contents::$contents $(($($of)*))?,
                        layout: Layout::$layout,
                        cpus: Cpus::$cpus,
                        size: Size::$size,
                        types: Types::$types,
                        owner: Owner::$owner,
                        nesting: Nesting::$nesting,
                    },)*
                }
            }
        }
    };
}

/// Capability that the creation of a map needs where `kernel.unprivileged_bpf_disabled` is 0
/// (`map_create`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapCapability {
    /// None.
    Anyone,
    /// CAP_BPF.
    Bpf,
    /// CAP_NET_ADMIN.
    NetAdmin,
}

/// What the values of local storage belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// A socket.
    Socket,
    /// An inode.
    Inode,
    /// A task.
    Task,
    /// A control group.
    Cgroup,
}

/// What programs have of a map of sockets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SocketUse {
    /// References, by lookups.
    References,
    /// AF_XDP sockets, by lookups.
    Xdp,
    /// A socket of a reuseport group is selected.
    Reuseport,
}

/// What the values of a kind are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// Bytes of the program.
    Values,
    /// Programs, for tail calls.
    Programs,
    /// Stack traces.
    Stacks,
    /// Control groups.
    Cgroups,
    /// Maps.
    Maps,
    /// Network devices.
    Devices,
    /// CPUs.
    Cpus,
    /// Sockets.
    Sockets(SocketUse),
    /// A value for each control group and attached program.
    AttachedStorage,
    /// Values of objects of the kernel (`bpf_local_storage`).
    Storage(StorageKind),
    /// A structure of the kernel.
    StructOps,
    /// Records that programs write for the host.
    Records,
    /// Records that the host writes for programs.
    UserRecords,
    /// Members of a set: `bpf_map_peek_elem` reads the value that it is given.
    Members,
    /// Pages.
    Pages,
    /// Targets of indirect jumps.
    Targets,
}

/// Where its entries lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// In buckets, where programs look values up without a call of the map.
    InlineHash,
    /// Likewise; the least recently used entry is evicted when the map is full.
    InlineLru,
    /// In buckets.
    Hash,
    /// In buckets; the least recently used entry is evicted when the map is full.
    Lru,
    /// In an array of the kernel (`array_map_alloc`), of which every index has a value.
    Dense,
    /// In an array of the kernel.
    Sparse,
    /// As its own structure has them.
    Own,
}

/// What several CPUs have of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cpus {
    /// One value.
    Shared,
    /// One value, which no run of a program sees on another CPU.
    Apart,
    /// A value for each CPU, which no run sees on another.
    Percpu,
    /// A value for each CPU; runs are in one order nevertheless.
    PercpuInOrder,
}

/// What its creation states of its size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// The number of entries.
    Entries,
    /// Likewise; one for each CPU if it is 0 or more.
    EntriesByCpu,
    /// The number of entries, and a number more (`map_extra`).
    EntriesAndExtra,
    /// 0: the kernel counts no entries, or there is one.
    NoEntries,
    /// The size of a ring in bytes.
    Ring,
}

/// What describes its keys and values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    /// BTF, if it is given.
    Typed,
    /// Nothing.
    Untyped,
}

/// Whom its values belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// To no object: any program may use them.
    Free,
    /// One loaded object file: they are its programs, maps, sockets.
    Loaded,
}

/// Whether maps of maps hold it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    /// They may.
    Inner,
    /// None does (`map_meta_equal` is missing).
    NeverInner,
}

/// What a kind says of the types of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTypes {
    /// The key has a type, which may be any.
    Any,
    /// An integer of 32 bits; of an array of variables none.
    Index,
    /// An integer of 32 bits.
    Descriptor,
    /// A structure.
    Struct,
    /// An integer of 64 bits, or a structure, as the size of the key says.
    Cgroup,
    /// None.
    None,
    /// BTF describes no maps of the kind.
    Untyped,
}

/// Batch operations of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// None.
    None,
    /// Lookup, update.
    Array,
    /// Lookup, update, delete.
    Trie,
    /// All.
    Hash,
}

/// Properties of a kind beside its number and name: a column each.
struct Row {
    contents: Contents,
    layout: Layout,
    cpus: Cpus,
    size: Size,
    types: Types,
    owner: Owner,
    nesting: Nesting,
}

// Number, name, nouns, first release with the commit, structure, capability; contents, layout, CPUs, size,
// types, owner, nesting, types of keys, batches.
kinds! {
    /// Hash table.
    Hash = 1, "hash", ("a hash map", "hash maps"), (3, 19, "0f8e4bd8a1fc"), "bpf_htab", Anyone, Values InlineHash Shared Entries Typed Free Inner Any Hash;
    /// Array: preallocated values by index.
    Array = 2, "array", ("an array", "arrays"), (3, 19, "28fbcfa08d8e"), "bpf_array", Anyone, Values Dense Shared Entries Typed Free Inner Index Array;
    /// Programs by index, for tail calls.
    ProgArray = 3, "prog_array", ("a program array", "program arrays"), (4, 2, "04fd61ab36ec"), "bpf_array", Anyone, Programs Sparse Apart Entries Typed Loaded NeverInner Any None;
    /// Perf events by index, usually by CPU.
    PerfEventArray = 4, "perf_event_array", ("a perf event array", "perf event arrays"), (4, 3, "ea317b267e9d"), "bpf_array", Anyone, Records Sparse Apart EntriesByCpu Untyped Free Inner Untyped None;
    /// Hash table with a value for each CPU.
    PercpuHash = 5, "percpu_hash", ("a per-CPU hash map", "per-CPU hash maps"), (4, 6, "824bd0ce6c7c"), "bpf_htab", Anyone, Values Hash Percpu Entries Typed Free Inner Any Hash;
    /// Array with a value for each CPU.
    PercpuArray = 6, "percpu_array", ("a per-CPU array", "per-CPU arrays"), (4, 6, "a10423b87a7e"), "bpf_array", Anyone, Values Dense Percpu Entries Typed Free Inner Index Array;
    /// Stack traces by identifier.
    StackTrace = 7, "stack_trace", ("a stack trace map", "stack trace maps"), (4, 6, "d5a3b1f69186"), "bpf_stack_map", Bpf, Stacks Own Shared Entries Untyped Free Inner Untyped None;
    /// Control groups by index.
    CgroupArray = 8, "cgroup_array", ("a cgroup array", "cgroup arrays"), (4, 8, "4ed8ec521ed5"), "bpf_array", Anyone, Cgroups Sparse Shared Entries Untyped Free Inner Untyped None;
    /// LRU hash: evicts the least recently used entry when it is full.
    LruHash = 9, "lru_hash", ("an LRU hash map", "LRU hash maps"), (4, 10, "29ba732acbee"), "bpf_htab", Bpf, Values InlineLru Shared Entries Typed Free Inner Any Hash;
    /// LRU hash with a value for each CPU.
    LruPercpuHash = 10, "lru_percpu_hash", ("a per-CPU LRU hash map", "per-CPU LRU hash maps"), (4, 10, "8f8449384ec3"), "bpf_htab", Bpf, Values Lru Percpu Entries Typed Free Inner Any Hash;
    /// Trie: values by longest matching prefix.
    LpmTrie = 11, "lpm_trie", ("an LPM trie", "LPM tries"), (4, 11, "b95a5c4db09b"), "lpm_trie", Bpf, Values Own Shared Entries Typed Free Inner Struct Trie;
    /// Maps by index.
    ArrayOfMaps = 12, "array_of_maps", ("an array of maps", "arrays of maps"), (4, 12, "56f668dfe00d"), "bpf_array", Anyone, Maps Sparse Shared Entries Untyped Loaded Inner Untyped Array;
    /// Maps by key.
    HashOfMaps = 13, "hash_of_maps", ("a hash of maps", "hashes of maps"), (4, 12, "bcc6b1b7ebf8"), "bpf_htab", Anyone, Maps Hash Shared Entries Untyped Loaded Inner Untyped Hash;
    /// Network devices by index, to redirect to.
    Devmap = 14, "devmap", ("a devmap", "devmaps"), (4, 14, "546ac1ffb70d"), "bpf_dtab", NetAdmin, Devices Own Apart Entries Untyped Free Inner Untyped None;
    /// Sockets by index.
    Sockmap = 15, "sockmap", ("a sockmap", "sockmaps"), (4, 14, "174a79ff9515"), "bpf_stab", NetAdmin, Sockets(SocketUse::References) Own Shared Entries Untyped Loaded Inner Untyped None;
    /// CPUs to redirect to.
    Cpumap = 16, "cpumap", ("a cpumap", "cpumaps"), (4, 15, "6710e1126934"), "bpf_cpu_map", Bpf, Cpus Own Apart EntriesByCpu Untyped Free Inner Untyped None;
    /// AF_XDP sockets by queue.
    Xskmap = 17, "xskmap", ("an xskmap", "xskmaps"), (4, 18, "fbfc504a24f5"), "xsk_map", NetAdmin, Sockets(SocketUse::Xdp) Own Apart Entries Untyped Loaded Inner Untyped None;
    /// Sockets by key.
    Sockhash = 18, "sockhash", ("a sockhash", "sockhashes"), (4, 18, "81110384441a"), "bpf_shtab", NetAdmin, Sockets(SocketUse::References) Hash Shared Entries Untyped Loaded Inner Untyped None;
    /// A value for each control group and attached program.
    CgroupStorage = 19, "cgroup_storage", ("a cgroup storage", "cgroup storages"), (4, 19, "de9cbbaadba5"), "bpf_cgroup_storage_map", Anyone, AttachedStorage Own Shared NoEntries Typed Free NeverInner Cgroup None;
    /// Sockets of a reuseport group by index.
    ReuseportSockarray = 20, "reuseport_sockarray", ("a reuseport sockarray", "reuseport sockarrays"), (4, 19, "5dc4c4b7d4e8"), "reuseport_array", Bpf, Sockets(SocketUse::Reuseport) Own Shared Entries Typed Loaded Inner Any None;
    /// A value for each control group, attached program and CPU.
    PercpuCgroupStorage = 21, "percpu_cgroup_storage", ("a per-CPU cgroup storage", "per-CPU cgroup storages"), (4, 20, "b741f1630346"), "bpf_cgroup_storage_map", Anyone, AttachedStorage Own PercpuInOrder NoEntries Typed Free NeverInner Cgroup None;
    /// FIFO queue; no keys.
    Queue = 22, "queue", ("a queue", "queues"), (4, 20, "f1a2e44a3aec"), "bpf_queue_stack", Bpf, Values Own Shared Entries Untyped Free Inner Any None;
    /// LIFO stack; no keys.
    Stack = 23, "stack", ("a stack", "stacks"), (4, 20, "f1a2e44a3aec"), "bpf_queue_stack", Bpf, Values Own Shared Entries Untyped Free Inner Any None;
    /// Local storage of sockets.
    SkStorage = 24, "sk_storage", ("a socket storage", "socket storages"), (5, 2, "6ac99e8f23d4"), "bpf_local_storage_map", Bpf, Storage(StorageKind::Socket) Own Shared NoEntries Typed Free Inner Descriptor None;
    /// Network devices by key, to redirect to.
    DevmapHash = 25, "devmap_hash", ("a devmap hash", "devmap hashes"), (5, 4, "6f9d451ab1a3"), "bpf_dtab", NetAdmin, Devices Own Apart Entries Untyped Free Inner Untyped None;
    /// struct_ops: a kernel structure whose function pointers are programs.
    StructOps = 26, "struct_ops", ("a struct_ops map", "struct_ops maps"), (5, 6, "85d33df357b6"), "bpf_struct_ops_map", Bpf, StructOps Own Shared NoEntries Typed Loaded NeverInner Any None;
    /// Ring buffer: records from programs to user space.
    Ringbuf = 27, "ringbuf", ("a ring buffer", "ring buffers"), (5, 8, "457f44363a88"), "bpf_ringbuf_map", Anyone, Records Own Shared Ring Typed Free Inner Any None;
    /// Local storage of inodes.
    InodeStorage = 28, "inode_storage", ("an inode storage", "inode storages"), (5, 10, "8ea636848aca"), "bpf_local_storage_map", Bpf, Storage(StorageKind::Inode) Own Shared NoEntries Typed Free Inner Descriptor None;
    /// Local storage of tasks.
    TaskStorage = 29, "task_storage", ("a task storage", "task storages"), (5, 11, "4cf1bc1f1045"), "bpf_local_storage_map", Bpf, Storage(StorageKind::Task) Own Shared NoEntries Typed Free Inner Descriptor None;
    /// Bloom filter: a set with false positives.
    BloomFilter = 30, "bloom_filter", ("a Bloom filter", "Bloom filters"), (5, 16, "9330986c0300"), "bpf_bloom_filter", Bpf, Members Own Shared EntriesAndExtra Typed Free Inner None None;
    /// User ring buffer: records from user space to programs.
    UserRingbuf = 31, "user_ringbuf", ("a user ring buffer", "user ring buffers"), (6, 1, "583c1f420173"), "bpf_ringbuf_map", Anyone, UserRecords Own Shared Ring Typed Free Inner Any None;
    /// Local storage of control groups.
    CgrpStorage = 32, "cgrp_storage", ("a cgroup local storage", "cgroup local storages"), (6, 2, "c4bcfb38a95e"), "bpf_local_storage_map", Bpf, Storage(StorageKind::Cgroup) Own Shared NoEntries Typed Free Inner Descriptor None;
    /// Arena: sparse memory shared by programs and user space.
    Arena = 33, "arena", ("an arena", "arenas"), (6, 9, "317460317a02"), "bpf_arena", Bpf, Pages Own Shared EntriesAndExtra Untyped Free Inner Any None;
    /// Instruction array: targets of indirect jumps.
    InsnArray = 34, "insn_array", ("an instruction array", "instruction arrays"), (6, 19, "b4ce5923e780"), "bpf_map", Bpf, Targets Own Shared Entries Typed Free NeverInner Any None;
    /// Resizable hash table.
    Rhash = 35, "rhash", ("a resizable hash map", "resizable hash maps"), (7, 2, "16b4d3e2fb24"), "bpf_map", Bpf, Values Own Shared EntriesAndExtra Typed Free Inner Any None;
}

impl MapKind {
    /// Number in `enum bpf_map_type`.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// True for maps of maps.
    pub const fn is_map_of_maps(self) -> bool {
        matches!(self.row().contents, Contents::Maps)
    }

    /// True for maps of values of the program.
    pub const fn holds_values(self) -> bool {
        matches!(self.row().contents, Contents::Values)
    }

    /// True for maps whose elements `bpf_for_each_map_elem` visits: hashes and arrays.
    pub const fn has_for_each(self) -> bool {
        self.holds_values() && !matches!(self.row().layout, Layout::Own)
    }

    /// True for maps of sockets, from which programs look up references.
    pub const fn holds_sockets(self) -> bool {
        matches!(
            self.row().contents,
            Contents::Sockets(SocketUse::References)
        )
    }

    /// What values of local storage belong to; `None` for other maps.
    #[doc(hidden)]
    pub const fn storage_kind(self) -> Option<StorageKind> {
        match self.row().contents {
            Contents::Storage(kind) => Some(kind),
            _ => None,
        }
    }

    /// True for local storage, whose values belong to objects of the kernel.
    pub const fn is_storage(self) -> bool {
        self.storage_kind().is_some()
    }

    /// True for the arrays of the kernel (`array_map_alloc`).
    pub const fn is_array(self) -> bool {
        matches!(self.row().layout, Layout::Dense | Layout::Sparse)
    }

    /// True for arrays of which every index below the number of entries has a value.
    pub const fn is_dense(self) -> bool {
        matches!(self.row().layout, Layout::Dense)
    }

    /// True for maps whose entries lie in buckets.
    pub const fn has_buckets(self) -> bool {
        match self.row().layout {
            Layout::InlineHash | Layout::InlineLru | Layout::Hash | Layout::Lru => true,
            Layout::Dense | Layout::Sparse | Layout::Own => false,
        }
    }

    /// True for hash tables in which programs look up values without a call of the map.
    pub const fn has_inline_hash(self) -> bool {
        matches!(self.row().layout, Layout::InlineHash | Layout::InlineLru)
    }

    /// True for maps whose creation takes a number more (`map_extra`).
    pub const fn takes_extra(self) -> bool {
        matches!(self.row().size, Size::EntriesAndExtra)
    }

    /// True for maps whose lookups return AF_XDP sockets.
    pub const fn holds_xdp_sockets(self) -> bool {
        matches!(self.row().contents, Contents::Sockets(SocketUse::Xdp))
    }

    /// True for values of control groups and attached programs, of which a program uses one map.
    pub const fn is_cgroup_storage(self) -> bool {
        matches!(self.row().contents, Contents::AttachedStorage)
    }

    /// True for maps where `bpf_map_peek_elem` reads the value that it is given.
    pub const fn reads_peeked_value(self) -> bool {
        matches!(self.row().contents, Contents::Members)
    }

    /// True for maps that no map of maps holds.
    pub const fn is_never_inner(self) -> bool {
        matches!(self.row().nesting, Nesting::NeverInner)
    }

    /// True for maps that are created with 0 entries.
    pub const fn has_no_entries(self) -> bool {
        matches!(self.row().size, Size::NoEntries)
    }

    /// True for maps with an entry for each CPU, which loaders count where the declaration does not.
    #[doc(hidden)]
    pub const fn has_entry_by_cpu(self) -> bool {
        matches!(self.row().size, Size::EntriesByCpu)
    }

    /// True for maps without values of a declared size, in which programs write records or use pages.
    #[doc(hidden)]
    pub const fn is_memory(self) -> bool {
        matches!(self.row().contents, Contents::Records | Contents::Pages)
    }

    /// Flags that the kernel adds to those of a request: the values of device maps, which lookups
    /// return, and targets of jumps are read only for programs.
    #[doc(hidden)]
    pub const fn added_flags(self) -> MapFlags {
        match self.row().contents {
            Contents::Devices | Contents::Targets => MapFlags::RDONLY_PROG,
            _ => MapFlags(0),
        }
    }

    /// True for maps to which programs write records for the host.
    pub const fn has_records(self) -> bool {
        matches!(self.row().contents, Contents::Records)
    }

    /// True for maps whose values are descriptors of sockets.
    pub const fn has_socket_values(self) -> bool {
        matches!(self.row().contents, Contents::Sockets(_))
    }

    /// True for maps of network devices.
    pub const fn holds_devices(self) -> bool {
        matches!(self.row().contents, Contents::Devices)
    }

    /// True for maps whose values are programs, maps and sockets of one loaded object file.
    pub const fn holds_objects(self) -> bool {
        matches!(self.row().owner, Owner::Loaded)
    }

    /// True for maps through which runs on several CPUs see no values of each other.
    pub const fn is_apart(self) -> bool {
        matches!(self.row().cpus, Cpus::Apart | Cpus::Percpu)
    }

    /// True for maps that evict the least recently used entry when they are full. They may have more
    /// entries than they are declared with: as many for each CPU.
    pub const fn is_lru(self) -> bool {
        matches!(self.row().layout, Layout::InlineLru | Layout::Lru)
    }

    /// True for ring buffers, whose `max_entries` is a size in bytes.
    pub const fn is_ring(self) -> bool {
        matches!(self.row().size, Size::Ring)
    }

    /// True for maps whose entries have a value for each CPU.
    pub const fn is_percpu(self) -> bool {
        matches!(self.row().cpus, Cpus::Percpu | Cpus::PercpuInOrder)
    }

    /// True if BTF may describe keys and values. libbpf omits it for the other kinds, as
    /// the kernel refuses it for several of them.
    pub const fn supports_btf(self) -> bool {
        matches!(self.row().types, Types::Typed)
    }
}

/// Flags of `BPF_MAP_CREATE` (`map_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapFlags(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal, $name:literal, $since:tt;)*) => {
        impl MapFlags {
            $($(#[$doc])* pub const $flag: MapFlags = MapFlags(1 << $bit);)*

            /// Names of the known flags that are set, with the release that introduced each.
            #[doc(hidden)]
            pub fn since(self) -> impl Iterator<Item = (&'static str, Since)> {
                let rows = [$((MapFlags::$flag, ($name, since!$since)),)*];
                let rows = rows.into_iter().filter(move |(flag, _)| self.has(*flag));
                rows.map(|(_, row)| row)
            }

            /// Every flag with its name in C, by bit.
            pub const ALL: &'static [(MapFlags, &'static str)] =
                &[$((MapFlags::$flag, $name),)*];
        }
    };
}

flags! {
    /// Entries are allocated on insertion.
    NO_PREALLOC = 0, "BPF_F_NO_PREALLOC", (4, 6, "6c9059817432");
    /// Each CPU has an LRU list of its own.
    NO_COMMON_LRU = 1, "BPF_F_NO_COMMON_LRU", (4, 10, "29ba732acbee");
    /// The map is allocated on the stated NUMA node.
    NUMA_NODE = 2, "BPF_F_NUMA_NODE", (4, 14, "96eabe7a40aa");
    /// System calls only read.
    RDONLY = 3, "BPF_F_RDONLY", (4, 15, "6e71b04a8224");
    /// System calls only write.
    WRONLY = 4, "BPF_F_WRONLY", (4, 15, "6e71b04a8224");
    /// Stack traces contain build ids and offsets instead of addresses.
    STACK_BUILD_ID = 5, "BPF_F_STACK_BUILD_ID", (4, 17, "615755a77b24");
    /// The hash seed is zero (for tests).
    ZERO_SEED = 6, "BPF_F_ZERO_SEED", (5, 0, "96b3b6c9091d");
    /// Programs only read.
    RDONLY_PROG = 7, "BPF_F_RDONLY_PROG", (5, 2, "591fe9888d78");
    /// Programs only write.
    WRONLY_PROG = 8, "BPF_F_WRONLY_PROG", (5, 2, "591fe9888d78");
    /// A new socket inherits a copy of its listener's value.
    CLONE = 9, "BPF_F_CLONE", (5, 4, "8f51dfc73bf1");
    /// User space may mmap the map.
    MMAPABLE = 10, "BPF_F_MMAPABLE", (5, 5, "fc9702273e2e");
    /// Perf events persist when the file descriptor is closed.
    PRESERVE_ELEMS = 11, "BPF_F_PRESERVE_ELEMS", (5, 10, "792caccc4526");
    /// Inner maps may have any number of entries.
    INNER_MAP = 12, "BPF_F_INNER_MAP", (5, 10, "4a8f87e60f6d");
    /// A link registers the struct_ops map.
    LINK = 13, "BPF_F_LINK", (6, 4, "68b04864ca42");
    /// The path of a pin is relative to a directory file descriptor.
    PATH_FD = 14, "BPF_F_PATH_FD", (6, 5, "cb8edce28073");
    /// The BTF id of the struct_ops value is of a module's BTF.
    VTYPE_BTF_OBJ_FD = 15, "BPF_F_VTYPE_BTF_OBJ_FD", (6, 9, "fcc2c1fb0651");
    /// A BPF token grants the privilege.
    TOKEN_FD = 16, "BPF_F_TOKEN_FD", (6, 9, "a177fc2bf6fd");
    /// User space gets SIGSEGV on an unallocated page of the arena.
    SEGV_ON_FAULT = 17, "BPF_F_SEGV_ON_FAULT", (6, 9, "317460317a02");
    /// Arena pointers are stored without conversion to user addresses.
    NO_USER_CONV = 18, "BPF_F_NO_USER_CONV", (6, 9, "317460317a02");
    /// New records overwrite old ones.
    RB_OVERWRITE = 19, "BPF_F_RB_OVERWRITE", (6, 19);
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
    fn later_numbers_and_bits_came_later() {
        let releases = MapKind::ALL.iter().map(|kind| kind.since().release);
        assert!(releases.is_sorted());
        let all = MapFlags(u32::MAX).since();
        assert!(all.map(|(_, since)| since.release).is_sorted());
        let two = MapFlags::MMAPABLE.with(MapFlags::NO_PREALLOC);
        let names: Vec<_> = two.since().map(|(name, _)| name).collect();
        assert_eq!(names, ["BPF_F_NO_PREALLOC", "BPF_F_MMAPABLE"]);
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
