//! Creation of maps (`map_create` of `kernel/bpf/syscall.c`), by the rules of
//! [`program::creation`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use program::MapParams;
use program::creation::{self, Machine};
use spec::maps::MapKind;
use spec::{Errno, Result};
use vm::MapHandle;

use super::{
    Definition, Host, Journal, Map, SyscallOperations, ValueLayout, arena, array, array_of_maps,
    bloom_filter, cgroup_array, cgroup_storage, cpumap, devmap, hash, hash_of_maps, local_storage,
    lpm_trie, memory::Charge, perf_event_array, prog_array, queue, reuseport_sockarray, ringbuf,
    sockhash, sockmap, stack_trace, user_ringbuf, xskmap,
};

impl Map {
    /// Creates a map by the kernel's rules. `value` is the layout of its values, of the size
    /// that the parameters say. Maps of maps are made by [`Map::create_with`].
    ///
    /// # Errors
    /// Those of `BPF_MAP_CREATE`; [`Errno::ENOTSUPP`] for kinds that are not built yet.
    pub fn create(params: &MapParams, value: ValueLayout, host: &Host) -> Result<Map> {
        Map::create_with(params, value, host, None)
    }

    /// Creates a map; `inner` is the template of a map of maps, which the maps in it must match.
    ///
    /// # Errors
    /// As [`Map::create`]; EBADF for a map of maps without a template.
    pub fn create_with(
        params: &MapParams,
        value: ValueLayout,
        host: &Host,
        inner: Option<&Map>,
    ) -> Result<Map> {
        use MapKind::{
            Arena, Array, ArrayOfMaps, BloomFilter, CgroupArray, CgroupStorage, CgrpStorage,
            Cpumap, Devmap, DevmapHash, Hash, HashOfMaps, InodeStorage, InsnArray, LpmTrie,
            LruHash, LruPercpuHash, PercpuArray, PercpuCgroupStorage, PercpuHash, PerfEventArray,
            ProgArray, Queue, ReuseportSockarray, Rhash, Ringbuf, SkStorage, Sockhash, Sockmap,
            Stack, StackTrace, StructOps, TaskStorage, UserRingbuf, Xskmap,
        };
        let kind = params.kind().ok_or(Errno::EINVAL)?;
        let machine = Machine {
            cpus: host.cpus,
            most_cpus: creation::MOST_CPUS,
            memory: host.machine_memory,
            rounds_arrays: false,
        };
        creation::check_numbers(params, &machine).map_err(|refusal| refusal.errno)?;
        let definition = Definition {
            params: MapParams {
                max_entries: hash::Hash::entries(params, host),
                ..*params
            },
            kind,
            value,
        };
        let map = &definition;
        let charge = Charge::new(&host.memory);
        let operations: Arc<dyn SyscallOperations> = match kind {
            Array | PercpuArray => Arc::new(array::Array::new(map, host, &charge)?),
            Hash | PercpuHash | LruHash | LruPercpuHash => Arc::new(hash::Hash::new(map, host)?),
            LpmTrie => Arc::new(lpm_trie::LpmTrie::new(map, host)?),
            Queue | Stack => Arc::new(queue::Queue::new(map, host)),
            BloomFilter => Arc::new(bloom_filter::BloomFilter::new(map, host, &charge)?),
            ProgArray => Arc::new(prog_array::ProgArray::new(map, host)?),
            PerfEventArray => Arc::new(perf_event_array::PerfEventArray::new(map)?),
            ArrayOfMaps => Arc::new(array_of_maps::ArrayOfMaps::new(map, inner)?),
            HashOfMaps => Arc::new(hash_of_maps::HashOfMaps::new(map, host, inner)?),
            Devmap => Arc::new(devmap::Devmap::new(map, host, &charge)?),
            DevmapHash => Arc::new(devmap::DevmapHash::new(map, host)?),
            Cpumap => Arc::new(cpumap::Cpumap::new(map, host, &charge)?),
            Xskmap => Arc::new(xskmap::Xskmap::new(map)?),
            Ringbuf => Arc::new(ringbuf::Ring::new(map, &charge)?),
            UserRingbuf => Arc::new(user_ringbuf::UserRing::new(map, &charge)?),
            CgroupArray => Arc::new(cgroup_array::CgroupArray::new(map)?),
            StackTrace => Arc::new(stack_trace::StackTrace::new(map)),
            CgroupStorage | PercpuCgroupStorage => {
                Arc::new(cgroup_storage::CgroupStorage::new(map, host)?)
            }
            SkStorage | InodeStorage | TaskStorage | CgrpStorage => {
                Arc::new(local_storage::LocalStorage::new(map, host))
            }
            ReuseportSockarray => Arc::new(reuseport_sockarray::ReuseportSockarray::new(map)?),
            Sockmap => Arc::new(sockmap::Sockmap::new(map)?),
            Sockhash => Arc::new(sockhash::Sockhash::new(map)),
            Arena => Arc::new(arena::Arena::new(map, host)?),
            // The check refuses them.
            StructOps | InsnArray | Rhash => return Err(Errno::ENOTSUPP),
        };
        let operations = match host.journals && kind.holds_values() {
            true => {
                let copies = if map.is_percpu() { host.cpus } else { 1 };
                Arc::new(Journal::new(operations, map, copies))
            }
            false => operations,
        };
        Ok(Map {
            is_frozen: AtomicBool::new(false),
            handle: MapHandle::new(definition.attributes(host, charge), operations.clone()),
            definition,
            operations,
            inner: inner
                .filter(|_| kind.is_map_of_maps())
                .map(|inner| *inner.params()),
        })
    }
}
