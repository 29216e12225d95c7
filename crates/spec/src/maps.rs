//! Map kinds and the flags of their creation: numbers and names
//! (`include/uapi/linux/bpf.h`; the names are those that bpftool prints).
//!
//! One table says what there is to know of a kind before any map exists; what a
//! kind does belongs to whoever implements it.

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// What kind of map it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum MapKind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl MapKind {
            /// Every kind, by number.
            pub const ALL: &'static [MapKind] = &[$(MapKind::$kind,)*];

            /// The kind with this number.
            pub const fn from_number(number: u32) -> Option<MapKind> {
                Some(match number {
                    $($number => MapKind::$kind,)*
                    _ => return None,
                })
            }

            /// Its name in listings.
            pub const fn name(self) -> &'static str {
                match self {
                    $(MapKind::$kind => $name,)*
                }
            }
        }
    };
}

// Number and name.
kinds! {
    /// Keys to values, by hash.
    Hash = 1, "hash";
    /// Values by index, all of them there from the start.
    Array = 2, "array";
    /// Programs by index, for tail calls.
    ProgArray = 3, "prog_array";
    /// Perf events by index, mostly one for each CPU.
    PerfEventArray = 4, "perf_event_array";
    /// A hash with one value for each CPU.
    PercpuHash = 5, "percpu_hash";
    /// An array with one value for each CPU.
    PercpuArray = 6, "percpu_array";
    /// Stack traces by identifier.
    StackTrace = 7, "stack_trace";
    /// Control groups by index.
    CgroupArray = 8, "cgroup_array";
    /// A hash that forgets what was not used for longest.
    LruHash = 9, "lru_hash";
    /// The same with one value for each CPU.
    LruPercpuHash = 10, "lru_percpu_hash";
    /// Values by the longest prefix that matches.
    LpmTrie = 11, "lpm_trie";
    /// Maps by index.
    ArrayOfMaps = 12, "array_of_maps";
    /// Maps by key.
    HashOfMaps = 13, "hash_of_maps";
    /// Network devices by index, to redirect to.
    Devmap = 14, "devmap";
    /// Sockets by index.
    Sockmap = 15, "sockmap";
    /// CPUs to redirect to.
    Cpumap = 16, "cpumap";
    /// AF_XDP sockets by queue.
    Xskmap = 17, "xskmap";
    /// Sockets by key.
    Sockhash = 18, "sockhash";
    /// One value for each control group and attached program.
    CgroupStorage = 19, "cgroup_storage";
    /// Sockets of a reuseport group by index.
    ReuseportSockarray = 20, "reuseport_sockarray";
    /// One value for each control group, attached program and CPU.
    PercpuCgroupStorage = 21, "percpu_cgroup_storage";
    /// First in, first out; no keys.
    Queue = 22, "queue";
    /// Last in, first out; no keys.
    Stack = 23, "stack";
    /// One value for each socket.
    SkStorage = 24, "sk_storage";
    /// Network devices by key, to redirect to.
    DevmapHash = 25, "devmap_hash";
    /// A table of functions of the kernel, filled with programs.
    StructOps = 26, "struct_ops";
    /// Records from programs to user space, through shared memory.
    Ringbuf = 27, "ringbuf";
    /// One value for each inode.
    InodeStorage = 28, "inode_storage";
    /// One value for each task.
    TaskStorage = 29, "task_storage";
    /// A set that may say yes by mistake, never no.
    BloomFilter = 30, "bloom_filter";
    /// Records from user space to programs, through shared memory.
    UserRingbuf = 31, "user_ringbuf";
    /// One value for each control group.
    CgrpStorage = 32, "cgrp_storage";
    /// Sparse memory that programs and user space share.
    Arena = 33, "arena";
    /// Places in a program, for indirect jumps.
    InsnArray = 34, "insn_array";
    /// A hash that grows with what is in it.
    Rhash = 35, "rhash";
}

impl MapKind {
    /// Its number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Are its values maps?
    pub const fn holds_maps(self) -> bool {
        matches!(self, MapKind::ArrayOfMaps | MapKind::HashOfMaps)
    }

    /// Is it a ring buffer, whose number of entries is its size in bytes?
    pub const fn is_ring(self) -> bool {
        matches!(self, MapKind::Ringbuf | MapKind::UserRingbuf)
    }

    /// May keys and values be described by types? Loaders leave them out where
    /// the kernel has no use for them: 6.18 refuses them for several of these.
    pub const fn takes_types(self) -> bool {
        !matches!(
            self,
            MapKind::PerfEventArray
                | MapKind::CgroupArray
                | MapKind::StackTrace
                | MapKind::ArrayOfMaps
                | MapKind::HashOfMaps
                | MapKind::Devmap
                | MapKind::DevmapHash
                | MapKind::Cpumap
                | MapKind::Xskmap
                | MapKind::Sockmap
                | MapKind::Sockhash
                | MapKind::Queue
                | MapKind::Stack
                | MapKind::Arena
        )
    }
}

/// Flags of a map's creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapFlags(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal, $name:literal;)*) => {
        impl MapFlags {
            $($(#[$doc])* pub const $flag: MapFlags = MapFlags(1 << $bit);)*

            /// Every flag with its name in C, from the lowest bit on.
            pub const ALL: &'static [(MapFlags, &'static str)] =
                &[$((MapFlags::$flag, $name),)*];
        }
    };
}

flags! {
    /// Take memory for entries when they come, not at the start.
    NO_PREALLOC = 0, "BPF_F_NO_PREALLOC";
    /// Each CPU has a list of its own of what was used last.
    NO_COMMON_LRU = 1, "BPF_F_NO_COMMON_LRU";
    /// The NUMA node of the definition counts.
    NUMA_NODE = 2, "BPF_F_NUMA_NODE";
    /// System calls may only read.
    RDONLY = 3, "BPF_F_RDONLY";
    /// System calls may only write.
    WRONLY = 4, "BPF_F_WRONLY";
    /// Keep build identifiers and offsets, not addresses.
    STACK_BUILD_ID = 5, "BPF_F_STACK_BUILD_ID";
    /// No random seed of the hash: for tests.
    ZERO_SEED = 6, "BPF_F_ZERO_SEED";
    /// Programs may only read.
    RDONLY_PROG = 7, "BPF_F_RDONLY_PROG";
    /// Programs may only write.
    WRONLY_PROG = 8, "BPF_F_WRONLY_PROG";
    /// A new socket gets a copy of its listener's value.
    CLONE = 9, "BPF_F_CLONE";
    /// User space may map it into memory.
    MMAPABLE = 10, "BPF_F_MMAPABLE";
    /// Perf events stay when the file is closed.
    PRESERVE_ELEMS = 11, "BPF_F_PRESERVE_ELEMS";
    /// As an inner map it may have any number of entries.
    INNER_MAP = 12, "BPF_F_INNER_MAP";
    /// A link registers it.
    LINK = 13, "BPF_F_LINK";
    /// The path of a pin starts at a directory that is given as a file.
    PATH_FD = 14, "BPF_F_PATH_FD";
    /// The value's type is of a module.
    VTYPE_BTF_OBJ_FD = 15, "BPF_F_VTYPE_BTF_OBJ_FD";
    /// A token grants the right to create it.
    TOKEN_FD = 16, "BPF_F_TOKEN_FD";
    /// User space gets a signal where an arena has no page.
    SEGV_ON_FAULT = 17, "BPF_F_SEGV_ON_FAULT";
    /// Pointers into an arena stay as programs see them.
    NO_USER_CONV = 18, "BPF_F_NO_USER_CONV";
    /// New records overwrite old ones.
    RB_OVERWRITE = 19, "BPF_F_RB_OVERWRITE";
}

impl MapFlags {
    /// Are all of these set?
    pub const fn has(self, flags: MapFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These too.
    #[must_use]
    pub const fn with(self, flags: MapFlags) -> MapFlags {
        MapFlags(self.0 | flags.0)
    }

    /// The names of those that are set and have one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let set = MapFlags::ALL
            .iter()
            .filter(move |(flag, _)| self.has(*flag));
        set.map(|&(_, name)| name)
    }

    /// Bits that no flag has.
    pub fn unknown(self) -> u32 {
        MapFlags::ALL
            .iter()
            .fold(self.0, |rest, (flag, _)| rest & !flag.0)
    }
}

/// Bytes of a name that the kernel keeps, without the final NUL
/// (`BPF_OBJ_NAME_LEN`).
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
    fn flags_are_told_apart_from_other_bits() {
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
