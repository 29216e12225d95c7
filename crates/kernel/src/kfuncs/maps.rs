//! Functions about maps.

use vm::{Cursor, MemoryPort};

use crate::call::{Call, Return};

/// `s64 bpf_map_sum_elem_count(const struct bpf_map *map)`: entries of a hash map; 0 for
/// other kinds, which do not count them.
pub(super) fn map_sum_elem_count<M: MemoryPort>(Call([map, ..], memory, cx): Call<M>) -> Return<M> {
    let kind = memory.map(map)?.kind;
    let mut count = 0;
    if kind.has_buckets() && kind.has_for_each() {
        let mut cursor = Cursor::default();
        while memory.next_entry(map, cx.cpu(), &mut cursor)?.is_some() {
            count += 1;
        }
        memory.end_entries(map, &mut cursor)?;
    }
    Ok(count)
}
