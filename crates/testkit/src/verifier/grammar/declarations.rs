//! Declarations of every program of the grammar: maps of most kinds, and BTF for special
//! fields of values and for functions.

use super::target::Target;

/// Bytes of the values of [`ARRAY`] and of the hash maps.
pub(super) const VALUE_SIZE: u32 = 48;
/// Entries of the maps that have keys.
pub(super) const ENTRIES: u32 = 4;

/// Indices of the maps.
pub(super) const ARRAY: u32 = 0;
pub(super) const HASH: u32 = 1;
pub(super) const PERCPU_ARRAY: u32 = 2;
pub(super) const LRU_HASH: u32 = 3;
pub(super) const QUEUE: u32 = 4;
pub(super) const RINGBUF: u32 = 5;
pub(super) const SOCKMAP: u32 = 6;
/// An array whose values start with a lock.
pub(super) const LOCKS: u32 = 7;
/// An array whose values start with a timer.
pub(super) const TIMERS: u32 = 8;
pub(super) const PROGRAMS: u32 = 9;
/// A frozen array that programs only read.
pub(super) const CONSTANTS: u32 = 10;
pub(super) const ARRAYS: u32 = 11;
pub(super) const PERCPU_HASH: u32 = 12;
pub(super) const STACK: u32 = 13;
/// A trie with keys of 32 bits behind the length of the prefix.
pub(super) const LPM: u32 = 14;
pub(super) const BLOOM: u32 = 15;
pub(super) const HASHES: u32 = 16;
pub(super) const EVENTS: u32 = 17;

/// A value with a lock, a list and a tree of [`NODE`]s, and one that is kept.
pub(super) const OBJECTS: u32 = 18;
/// A value that keeps a [`NODE`] and a task.
pub(super) const KEPT: u32 = 19;
/// A value that starts with a resilient lock.
pub(super) const RESILIENT: u32 = 20;

/// The maps that only callers with a capability create.
pub(super) const PRIVILEGED: &[u32] = &[LRU_HASH, QUEUE, SOCKMAP, STACK, LPM, BLOOM];

const MAPS: &str = r#"
.map "values" type=array key=4 value=48 entries=4
.end
.map "hash" type=hash key=4 value=48 entries=4
.end
.map "percpu" type=percpu_array key=4 value=48 entries=4
.end
.map "lru" type=lru_hash key=4 value=48 entries=4
.end
.map "queue" type=queue key=0 value=8 entries=4
.end
.map "ring" type=ringbuf key=0 value=0 entries=4096
.end
.map "sockets" type=sockmap key=4 value=4 entries=4
.end
.map "locks" type=array key=4 value=48 entries=4 btf_key=1 btf_value=7 btf=1
.end
.map "timers" type=array key=4 value=48 entries=4 btf_key=1 btf_value=8 btf=1
.end
.map "programs" type=prog_array key=4 value=4 entries=4
.end
.map "constants" type=array key=4 value=16 entries=1 flags=0x80
    .data size=16 05000000f8ffffff000102030a0b0c0d
    .frozen
.end
.map "arrays" type=array_of_maps key=4 value=4 entries=4
    .inner "inner" type=array key=4 value=16 entries=4
.end
.map "percpu_hash" type=percpu_hash key=4 value=48 entries=4
.end
.map "stack" type=stack key=0 value=8 entries=4
.end
.map "prefixes" type=lpm_trie key=8 value=48 entries=8 flags=0x1
.end
.map "set" type=bloom_filter key=0 value=8 entries=8
.end
.map "hashes" type=hash_of_maps key=4 value=4 entries=4
    .inner "inner_hash" type=hash key=4 value=16 entries=4
.end
.map "events" type=perf_event_array key=4 value=4 entries=4
.end
.map "objects" type=array key=4 value=48 entries=1 btf_key=1 btf_value=37 btf=1
.end
.map "kept" type=array key=4 value=16 entries=1 btf_key=1 btf_value=46 btf=1
.end
.map "resilient" type=array key=4 value=16 entries=1 btf_key=1 btf_value=48 btf=1
.end
"#;

/// Types before the one of the context.
const TYPES: &str = r#"
.btf
    [1] INT "int" size=4 bits_offset=0 nr_bits=32 encoding=1
    [2] INT "unsigned int" size=4 bits_offset=0 nr_bits=32 encoding=0
    [3] INT "unsigned long long" size=8 bits_offset=0 nr_bits=64 encoding=0
    [4] STRUCT "bpf_spin_lock" size=4
        - "val" type_id=2 bits_offset=0
    [5] ARRAY type_id=3 index_type_id=2 nr_elems=2
    [6] STRUCT "bpf_timer" size=16
        - "__opaque" type_id=5 bits_offset=0
    [7] STRUCT "locked" size=48
        - "lock" type_id=4 bits_offset=0
        - "a" type_id=5 bits_offset=64
        - "b" type_id=5 bits_offset=192
    [8] STRUCT "timed" size=48
        - "timer" type_id=6 bits_offset=0
        - "a" type_id=5 bits_offset=128
        - "b" type_id=5 bits_offset=256
    [9] PTR type_id=3
    [10] PTR type_id=0
    [11] FUNC_PROTO ret_type_id=1
        - "p" type_id=9
    [12] FUNC_PROTO ret_type_id=1
        - "i" type_id=2
        - "context" type_id=10
    [13] FUNC_PROTO ret_type_id=1
        - "map" type_id=10
        - "key" type_id=10
        - "value" type_id=10
        - "context" type_id=10
    [14] FUNC_PROTO ret_type_id=1
        - "p" type_id=10
        - "n" type_id=2
    [15] FUNC "memory" type_id=11 linkage=global
    [16] FUNC "round" type_id=12 linkage=static
    [17] FUNC "element" type_id=13 linkage=static
    [18] FUNC "stack" type_id=14 linkage=static
"#;

/// Types behind those of functions that take the context: what programs allocate and keep.
const OBJECT_TYPES: &str = r#"    [26] STRUCT "bpf_list_head" size=16
        - "__opaque" type_id=5 bits_offset=0
    [27] ARRAY type_id=3 index_type_id=2 nr_elems=3
    [28] STRUCT "bpf_list_node" size=24
        - "__opaque" type_id=27 bits_offset=0
    [29] STRUCT "bpf_rb_root" size=16
        - "__opaque" type_id=5 bits_offset=0
    [30] ARRAY type_id=3 index_type_id=2 nr_elems=4
    [31] STRUCT "bpf_rb_node" size=32
        - "__opaque" type_id=30 bits_offset=0
    [32] ARRAY type_id=2 index_type_id=2 nr_elems=1
    [33] STRUCT "bpf_refcount" size=4
        - "__opaque" type_id=32 bits_offset=0
    [34] STRUCT "own_node" size=80
        - "key" type_id=3 bits_offset=0
        - "list" type_id=28 bits_offset=64
        - "tree" type_id=31 bits_offset=256
        - "count" type_id=33 bits_offset=512
        - "number" type_id=3 bits_offset=576
    [35] TYPE_TAG "kptr" type_id=34
    [36] PTR type_id=35
    [37] STRUCT "held" size=48
        - "lock" type_id=4 bits_offset=0
        - "list" type_id=26 bits_offset=64
        - "tree" type_id=29 bits_offset=192
        - "kept" type_id=36 bits_offset=320
    [38] DECL_TAG "contains:own_node:list" type_id=37 component_idx=1
    [39] DECL_TAG "contains:own_node:tree" type_id=37 component_idx=2
    [40] PTR type_id=31
    [41] FUNC_PROTO ret_type_id=1
        - "a" type_id=40
        - "b" type_id=40
    [42] FUNC "less" type_id=41 linkage=static
    [43] STRUCT "task_struct" size=8
        - "first" type_id=3 bits_offset=0
    [44] TYPE_TAG "kptr" type_id=43
    [45] PTR type_id=44
    [46] STRUCT "kept" size=16
        - "node" type_id=36 bits_offset=0
        - "task" type_id=45 bits_offset=64
    [47] STRUCT "bpf_res_spin_lock" size=4
        - "val" type_id=2 bits_offset=0
    [48] STRUCT "resilient" size=16
        - "lock" type_id=47 bits_offset=0
        - "a" type_id=3 bits_offset=64
    [49] STRUCT "own_numbers" size=16
        - "a" type_id=3 bits_offset=0
        - "b" type_id=3 bits_offset=64
"#;

/// A structure that programs allocate, with the offsets of its nodes, and one of numbers.
pub(super) const NODE: u32 = 34;
pub(super) const NODE_LIST: u32 = 8;
pub(super) const NODE_TREE: u32 = 32;
pub(super) const NUMBERS: u32 = 49;

/// BTF ids of functions.
pub(super) const MEMORY: u32 = 15;
pub(super) const ROUND: u32 = 16;
pub(super) const ELEMENT: u32 = 17;
pub(super) const ON_STACK: u32 = 18;
pub(super) const MAIN: u32 = 23;
pub(super) const STATIC: u32 = 24;
pub(super) const GLOBAL: u32 = 25;
pub(super) const LESS: u32 = 42;

/// The directives of a case for a program type, before its instructions.
pub(super) fn declarations(target: Target) -> String {
    let Target {
        name,
        directives,
        hook,
        context,
        ..
    } = target;
    let context = match context {
        "" => "nothing",
        context => context,
    };
    let hook = match hook {
        "" => String::new(),
        hook => format!(".attach btf_id={{{hook}}} module=0\n"),
    };
    format!(
        r#".program "generated"
.type {name}
{directives}{hook}.license "Dual MIT/GPL"{MAPS}{TYPES}    [19] STRUCT "{context}" size=8
        - "first" type_id=3 bits_offset=0
    [20] PTR type_id=19
    [21] FUNC_PROTO ret_type_id=1
        - "context" type_id=20
    [22] FUNC_PROTO ret_type_id=1
        - "context" type_id=20
        - "n" type_id=2
    [23] FUNC "generated" type_id=21 linkage=global
    [24] FUNC "static" type_id=22 linkage=static
    [25] FUNC "global" type_id=22 linkage=global
{OBJECT_TYPES}.end
"#
    )
}
