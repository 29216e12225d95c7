//! Sizes, entries and flags by kind, in two steps: what Linux checks before the privileges of
//! the caller (`map_alloc_check`), and what it checks when it allocates the map
//! (`map_alloc`). The memory that sizes come to is in `allocation`.

use spec::Errno;
use spec::kernel::Privileges;
use spec::limits;
use spec::maps::{MapFlags, MapKind};

use super::Machine;
use super::fault::{EntriesRule, MapFault, MapRefusal, SizeRule};
use crate::map_def::{MapParams, PAGE_SIZE};
use MapKind::{
    Arena, Array, ArrayOfMaps, BloomFilter, CgroupArray, CgroupStorage, CgrpStorage, Cpumap,
    Devmap, DevmapHash, Hash, HashOfMaps, InodeStorage, InsnArray, LpmTrie, LruHash, LruPercpuHash,
    PercpuArray, PercpuCgroupStorage, PercpuHash, PerfEventArray, ProgArray, Queue,
    ReuseportSockarray, Rhash, Ringbuf, SkStorage, Sockhash, Sockmap, Stack, StackTrace, StructOps,
    TaskStorage, UserRingbuf, Xskmap,
};

/// Most bytes that the kernel allocates at once (`KMALLOC_MAX_SIZE`).
const KMALLOC_MAX: u32 = 4 << 20;

/// Most bytes of a value that exists for each CPU (`PCPU_MIN_UNIT_SIZE`).
const PERCPU_MAX_VALUE: u32 = 32 << 10;

/// Bytes of the kernel in front of the key of a hash table (`struct htab_elem`).
pub(super) const HASH_ELEMENT: u32 = 48;

/// Bytes of the kernel in front of the data of a node of a trie (`struct lpm_trie_node`).
const LPM_NODE: u32 = 24;

/// Most bytes of the data of a key of a trie (`LPM_DATA_SIZE_MAX`), behind 4 of its length.
const LPM_MOST_DATA: u32 = 256;
/// Most bytes of a value of a trie (`LPM_VAL_SIZE_MAX`).
const LPM_MOST_VALUE: u32 = KMALLOC_MAX - LPM_MOST_DATA - LPM_NODE;

/// Most bytes of a value of local storage (`BPF_LOCAL_STORAGE_MAX_VALUE_SIZE`): 2^16 - 1 less
/// those of the kernel in front of it (`struct bpf_local_storage_elem`).
const STORAGE_MOST_VALUE: u32 = u16::MAX as u32 - 128;

/// Bytes of a frame of a stack trace: an address, or a build id with an offset.
const STACK_ADDRESS: u32 = 8;
const STACK_BUILD_ID: u32 = 32;
/// Most frames of a stack trace (`PERF_MAX_STACK_DEPTH`).
const STACK_MOST_FRAMES: u32 = 127;

/// Bytes of a value of a stack map that loaders set: the most addresses that a trace has.
pub const LOADER_STACK_BYTES: u32 = STACK_MOST_FRAMES * STACK_ADDRESS;

/// Bytes of the address space of an arena.
const ARENA_SPACE: u64 = 1 << 32;

/// Bytes of a target of indirect jumps (`struct bpf_insn_array_value`).
const JUMP_TARGET: u32 = 16;

/// Most hash functions of a Bloom filter.
const BLOOM_MOST_HASHES: u64 = 15;

/// Sizes of keys of values of control groups: their id, or with the attach type
/// (`struct bpf_cgroup_storage_key`).
const CGROUP_KEYS: &[u32] = &[8, 16];

const ACCESS: MapFlags = MapFlags::RDONLY.with(MapFlags::WRONLY);
const PROG_ACCESS: MapFlags = MapFlags::RDONLY_PROG.with(MapFlags::WRONLY_PROG);
const ALL_ACCESS: MapFlags = ACCESS.with(PROG_ACCESS);

type Outcome = Result<(), MapRefusal>;

/// The checks that all kinds share, which come first.
pub(super) fn check_common(kind: MapKind, params: &MapParams) -> Outcome {
    if params.extra != 0 && !kind.takes_extra() {
        return Err(MapFault::Extra { kind }.with(Errno::EINVAL));
    }
    if params.flags.has(ACCESS) {
        return Err(MapFault::Exclusive { flags: ACCESS }.with(Errno::EINVAL));
    }
    let node = params.numa_node;
    match params.flags.has(MapFlags::NUMA_NODE) && node != 0 {
        true => Err(MapFault::NumaNode { node }.with(Errno::EINVAL)),
        false => Ok(()),
    }
}

/// The numbers of a request for a map of a kind.
struct Request<'a> {
    kind: MapKind,
    params: &'a MapParams,
}

impl Request<'_> {
    fn refuse(&self, errno: Errno, fault: MapFault) -> Outcome {
        Err(fault.with(errno))
    }

    fn key(&self, errno: Errno, rule: SizeRule) -> Outcome {
        let (kind, size) = (self.kind, self.params.key_size);
        match rule.allows(size) {
            true => Ok(()),
            false => self.refuse(errno, MapFault::KeySize { kind, size, rule }),
        }
    }

    fn value(&self, errno: Errno, rule: SizeRule) -> Outcome {
        let (kind, size) = (self.kind, self.params.value_size);
        match rule.allows(size) {
            true => Ok(()),
            false => self.refuse(errno, MapFault::ValueSize { kind, size, rule }),
        }
    }

    fn entries(&self, errno: Errno, rule: EntriesRule) -> Outcome {
        let (kind, entries) = (self.kind, self.params.max_entries);
        match rule.allows(entries) {
            true => Ok(()),
            false => self.refuse(
                errno,
                MapFault::Entries {
                    kind,
                    entries,
                    rule,
                },
            ),
        }
    }

    /// The flags are among those that the kind knows, and say of programs that they may read or
    /// write.
    fn flags(&self, allowed: MapFlags) -> Outcome {
        let unknown = MapFlags(self.params.flags.0 & !allowed.0);
        if unknown.0 != 0 {
            let (kind, flags) = (self.kind, unknown);
            return self.refuse(Errno::EINVAL, MapFault::Flags { kind, flags });
        }
        match self.params.flags.has(PROG_ACCESS) {
            true => self.refuse(Errno::EINVAL, MapFault::Exclusive { flags: PROG_ACCESS }),
            false => Ok(()),
        }
    }

    fn needs(&self, flag: MapFlags) -> Outcome {
        let kind = self.kind;
        match self.params.flags.has(flag) {
            true => Ok(()),
            false => self.refuse(Errno::EINVAL, MapFault::MissingFlag { kind, flag }),
        }
    }

    /// Values for each CPU fit into the memory of a CPU.
    fn percpu_value(&self) -> Outcome {
        match self.kind.is_percpu() {
            true => self.value(Errno::E2BIG, SizeRule::AtMost(PERCPU_MAX_VALUE)),
            false => Ok(()),
        }
    }

    /// An array whose values are indexes or descriptors.
    fn objects(&self, values: SizeRule, flags: MapFlags) -> Outcome {
        self.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
        self.key(Errno::EINVAL, SizeRule::Exactly(4))?;
        self.value(Errno::EINVAL, values)?;
        self.flags(flags)
    }
}

/// Checks that come before those of privileges.
pub(super) fn check_before_privileges(
    kind: MapKind,
    params: &MapParams,
    privileges: Privileges,
) -> Outcome {
    let request = Request { kind, params };
    let node = MapFlags::NUMA_NODE;
    match kind {
        Array | PercpuArray => array(&request),
        Hash | PercpuHash | LruHash | LruPercpuHash => hash(&request, privileges),
        HashOfMaps => {
            request.value(Errno::EINVAL, SizeRule::Exactly(4))?;
            hash(&request, privileges)
        }
        ProgArray | CgroupArray | ArrayOfMaps => {
            request.objects(SizeRule::Exactly(4), node.with(ACCESS))
        }
        PerfEventArray => {
            let flags = node.with(ACCESS).with(MapFlags::PRESERVE_ELEMS);
            request.objects(SizeRule::Exactly(4), flags)
        }
        Devmap | DevmapHash => {
            request.objects(SizeRule::OneOf(&[4, 8]), node.with(ACCESS))?;
            match kind {
                DevmapHash => request.entries(Errno::EINVAL, EntriesRule::AtMost(1 << 31)),
                _ => Ok(()),
            }
        }
        ReuseportSockarray => request.objects(SizeRule::OneOf(&[4, 8]), node.with(ALL_ACCESS)),
        Queue | Stack => {
            request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
            request.key(Errno::EINVAL, SizeRule::Exactly(0))?;
            request.value(Errno::EINVAL, SizeRule::AtLeastOne)?;
            request.flags(node.with(ALL_ACCESS))?;
            request.value(Errno::E2BIG, SizeRule::AtMost(KMALLOC_MAX))
        }
        BloomFilter => request.value(Errno::E2BIG, SizeRule::AtMost(KMALLOC_MAX)),
        SkStorage | InodeStorage | TaskStorage | CgrpStorage => storage(&request),
        StructOps => Err(MapFault::KernelType.with(Errno::EINVAL)),
        LpmTrie | StackTrace | Cpumap | Xskmap | Sockmap | Sockhash | CgroupStorage
        | PercpuCgroupStorage | Ringbuf | UserRingbuf | Arena => Ok(()),
        InsnArray => request.objects(SizeRule::Exactly(JUMP_TARGET), MapFlags::default()),
        Rhash => {
            request.needs(MapFlags::NO_PREALLOC)?;
            hash(&request, privileges)
        }
    }
}

/// Checks that come when the map is allocated.
pub(super) fn check_allocated(kind: MapKind, params: &MapParams, machine: &Machine) -> Outcome {
    let request = Request { kind, params };
    let node = MapFlags::NUMA_NODE;
    match kind {
        LpmTrie => {
            request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
            request.needs(MapFlags::NO_PREALLOC)?;
            request.flags(MapFlags::NO_PREALLOC.with(node).with(ALL_ACCESS))?;
            request.key(Errno::EINVAL, SizeRule::Between(5, 4 + LPM_MOST_DATA))?;
            request.value(Errno::EINVAL, SizeRule::Between(1, LPM_MOST_VALUE))
        }
        StackTrace => {
            request.flags(node.with(ACCESS).with(MapFlags::STACK_BUILD_ID))?;
            let frame = match params.flags.has(MapFlags::STACK_BUILD_ID) {
                true => STACK_BUILD_ID,
                false => STACK_ADDRESS,
            };
            request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
            request.key(Errno::EINVAL, SizeRule::Exactly(4))?;
            request.value(Errno::EINVAL, SizeRule::Frames(frame, STACK_MOST_FRAMES))?;
            request.entries(Errno::E2BIG, EntriesRule::AtMost(1 << 31))
        }
        Cpumap => {
            request.objects(SizeRule::OneOf(&[4, 8]), node)?;
            request.entries(Errno::E2BIG, EntriesRule::AtMost(machine.most_cpus))
        }
        Xskmap => request.objects(SizeRule::Exactly(4), node.with(ACCESS)),
        Sockmap => request.objects(SizeRule::OneOf(&[4, 8]), node.with(ACCESS)),
        Sockhash => {
            request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
            request.key(Errno::EINVAL, SizeRule::AtLeastOne)?;
            request.value(Errno::EINVAL, SizeRule::OneOf(&[4, 8]))?;
            request.flags(node.with(ACCESS))?;
            request.key(Errno::E2BIG, SizeRule::AtMost(limits::STACK))
        }
        CgroupStorage | PercpuCgroupStorage => {
            request.key(Errno::EINVAL, SizeRule::OneOf(CGROUP_KEYS))?;
            request.value(Errno::EINVAL, SizeRule::AtLeastOne)?;
            request.percpu_value()?;
            request.value(Errno::E2BIG, SizeRule::AtMost(STORAGE_MOST_VALUE))?;
            request.flags(node.with(ALL_ACCESS))?;
            request.entries(Errno::EINVAL, EntriesRule::None)
        }
        Ringbuf | UserRingbuf => {
            request.flags(node)?;
            request.key(Errno::EINVAL, SizeRule::Exactly(0))?;
            request.value(Errno::EINVAL, SizeRule::Exactly(0))?;
            request.entries(Errno::EINVAL, EntriesRule::Ring)
        }
        BloomFilter => {
            request.key(Errno::EINVAL, SizeRule::Exactly(0))?;
            request.value(Errno::EINVAL, SizeRule::AtLeastOne)?;
            request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
            request.flags(node.with(MapFlags::ZERO_SEED).with(ALL_ACCESS))?;
            match params.extra {
                0..=BLOOM_MOST_HASHES => Ok(()),
                hashes => request.refuse(Errno::EINVAL, MapFault::Hashes { hashes }),
            }
        }
        Arena => arena(&request),
        Hash | PercpuHash | LruHash | LruPercpuHash | HashOfMaps | Array | PercpuArray
        | ProgArray | PerfEventArray | CgroupArray | ArrayOfMaps | Devmap | DevmapHash
        | ReuseportSockarray | Queue | Stack | SkStorage | InodeStorage | TaskStorage
        | CgrpStorage | StructOps | InsnArray | Rhash => Ok(()),
    }
}

fn array(request: &Request<'_>) -> Outcome {
    let plain = MapFlags::MMAPABLE.with(MapFlags::INNER_MAP);
    request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
    request.key(Errno::EINVAL, SizeRule::Exactly(4))?;
    request.value(Errno::EINVAL, SizeRule::AtLeastOne)?;
    request.flags(match request.kind.is_percpu() {
        true => ALL_ACCESS,
        false => ALL_ACCESS.with(MapFlags::NUMA_NODE).with(plain),
    })?;
    request.value(Errno::E2BIG, SizeRule::AtMost(i32::MAX as u32))?;
    request.percpu_value()
}

fn hash(request: &Request<'_>, privileges: Privileges) -> Outcome {
    let (kind, params) = (request.kind, request.params);
    if params.flags.has(MapFlags::ZERO_SEED) && !privileges.sys_admin {
        return request.refuse(Errno::EPERM, MapFault::ZeroSeed);
    }
    let node = match kind.is_percpu() || params.flags.has(MapFlags::NO_COMMON_LRU) {
        true => MapFlags::default(),
        false => MapFlags::NUMA_NODE,
    };
    let lists = match kind.is_lru() {
        true => MapFlags::NO_COMMON_LRU,
        false => MapFlags::default(),
    };
    let allowed = ALL_ACCESS.with(MapFlags::ZERO_SEED).with(lists);
    if !kind.is_lru() {
        request.flags(allowed.with(MapFlags::NO_PREALLOC).with(node))?;
    } else {
        // The node of lists of CPUs is checked behind the preallocation.
        let known = allowed
            .with(MapFlags::NO_PREALLOC)
            .with(MapFlags::NUMA_NODE);
        request.flags(known)?;
        if params.flags.has(MapFlags::NO_PREALLOC) {
            let flags = MapFlags::NO_PREALLOC;
            return request.refuse(Errno::ENOTSUPP, MapFault::Flags { kind, flags });
        }
        request.flags(allowed.with(node))?;
    }
    request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
    request.key(Errno::EINVAL, SizeRule::AtLeastOne)?;
    request.value(Errno::EINVAL, SizeRule::AtLeastOne)?;
    let bytes = u64::from(params.key_size) + u64::from(params.value_size);
    let most = KMALLOC_MAX - HASH_ELEMENT - 1;
    if bytes > u64::from(most) {
        return request.refuse(Errno::E2BIG, MapFault::Element { kind, bytes, most });
    }
    request.percpu_value()
}

fn storage(request: &Request<'_>) -> Outcome {
    let (kind, params) = (request.kind, request.params);
    request.flags(MapFlags::NO_PREALLOC.with(MapFlags::CLONE))?;
    request.needs(MapFlags::NO_PREALLOC)?;
    request.entries(Errno::EINVAL, EntriesRule::None)?;
    request.key(Errno::EINVAL, SizeRule::Exactly(4))?;
    request.value(Errno::EINVAL, SizeRule::AtLeastOne)?;
    if params.key_type.is_void() || params.value_type.is_void() {
        return request.refuse(Errno::EINVAL, MapFault::Untyped { kind });
    }
    request.value(Errno::E2BIG, SizeRule::AtMost(STORAGE_MOST_VALUE))
}

fn arena(request: &Request<'_>) -> Outcome {
    let params = request.params;
    let flags = MapFlags::MMAPABLE
        .with(MapFlags::SEGV_ON_FAULT)
        .with(MapFlags::NO_USER_CONV);
    request.key(Errno::EINVAL, SizeRule::Exactly(0))?;
    request.value(Errno::EINVAL, SizeRule::Exactly(0))?;
    request.entries(Errno::EINVAL, EntriesRule::AtLeastOne)?;
    request.needs(MapFlags::MMAPABLE)?;
    request.flags(flags)?;
    let start = params.extra;
    if !start.is_multiple_of(PAGE_SIZE.into()) {
        return request.refuse(Errno::EINVAL, MapFault::ArenaStart { start });
    }
    let most = (ARENA_SPACE / u64::from(PAGE_SIZE)) as u32;
    request.entries(Errno::E2BIG, EntriesRule::AtMost(most))?;
    // Addresses of an arena differ in their lower half only.
    let bytes = u64::from(params.max_entries) * u64::from(PAGE_SIZE);
    let last = start.wrapping_add(bytes - 1);
    match start >> 32 == last >> 32 {
        true => Ok(()),
        false => request.refuse(Errno::ERANGE, MapFault::ArenaSpan { start, bytes }),
    }
}
