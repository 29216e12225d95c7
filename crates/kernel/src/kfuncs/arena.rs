//! Pages of arenas.

use spec::Errno;
use vm::MemoryPort;

use super::int;
use crate::call::{Call, Return};

/// `NUMA_NO_NODE`, and the only node of the model machine.
const NODES: [i32; 2] = [-1, 0];

/// `void *bpf_arena_alloc_pages(void *p__map, void *addr__ign, u32 page_cnt, int node_id,
/// u64 flags)`: the address in user space of zeroed pages, which is the given one unless that
/// is 0. Returns 0 for maps that are no arenas, with flags, without pages, on nodes that are
/// not there, and if no such range is free.
pub(super) fn arena_alloc_pages<M: MemoryPort>(
    Call([map, address, pages, node, flags], memory, _): Call<M>,
) -> Return<M> {
    let arena = memory.map(map)?.operations().arena();
    let arena = arena.filter(|_| flags == 0 && NODES.contains(&(node as i32)));
    Ok(arena.map_or(0, |arena| arena.allocate(address, pages as u32)))
}

/// `void bpf_arena_free_pages(void *p__map, void *ptr__ign, u32 page_cnt)`: frees the pages of
/// a range in the arena.
pub(super) fn arena_free_pages<M: MemoryPort>(
    Call([map, address, pages, ..], memory, _): Call<M>,
) -> Return<M> {
    let arena = memory.map(map)?.operations().arena();
    if let Some(arena) = arena.filter(|_| address != 0) {
        arena.free(address, pages as u32);
    }
    Ok(0)
}

/// `int bpf_arena_reserve_pages(void *p__map, void *ptr__ign, u32 page_cnt)`: keeps free pages
/// from being allocated. Returns -EINVAL outside the arena and for other maps, -EBUSY if a
/// page is not free.
pub(super) fn arena_reserve_pages<M: MemoryPort>(
    Call([map, address, pages, ..], memory, _): Call<M>,
) -> Return<M> {
    let arena = memory.map(map)?.operations().arena().ok_or(Errno::EINVAL);
    let reserved = arena.and_then(|arena| arena.reserve(address, pages as u32));
    Ok(int(reserved.err().map_or(0, Errno::negated)))
}
