/*
 * Programs that look at addresses: what they are, what lies behind pointers to maps, and what
 * loads from numbers that are made pointers give.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c pointers.bpf.c && llvm-strip-19 -g pointers.bpf.o
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
#define __array(name, val) typeof(val) *name[]

enum bpf_map_type { UNSPEC };
enum { HASH = 1, ARRAY = 2, PERCPU_ARRAY = 6, LRU_HASH = 9, LPM_TRIE = 11, ARRAY_OF_MAPS = 12,
       QUEUE = 22, RINGBUF = 27 };

struct inner {
	__uint(type, ARRAY);
	__uint(max_entries, 6);
	__type(key, u32);
	__type(value, u64[3]);
};

struct inner held SEC(".maps");

struct {
	__uint(type, ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { &held } };

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 5);
	__type(key, u32);
	__type(value, u32);
} array SEC(".maps");

struct {
	__uint(type, PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, u64);
} percpu SEC(".maps");

struct {
	__uint(type, HASH);
	__uint(max_entries, 33);
	__uint(map_flags, 1);
	__type(key, u64);
	__type(value, u8[20]);
} hash SEC(".maps");

struct {
	__uint(type, LRU_HASH);
	__uint(max_entries, 100);
	__type(key, u32);
	__type(value, u64);
} lru SEC(".maps");

struct {
	__uint(type, LPM_TRIE);
	__uint(max_entries, 7);
	__uint(map_flags, 1);
	__type(key, u64);
	__type(value, u64);
} trie SEC(".maps");

struct {
	__uint(type, QUEUE);
	__uint(max_entries, 9);
	__type(value, u32);
} queue SEC(".maps");

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 8192);
} ring SEC(".maps");

struct xdp_md {
	u32 data, data_end, data_meta;
};

struct __sk_buff {
	u32 before[19], data, data_end;
};

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static void *(*const ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_discard)(void *record, u64 flags) = (void *)133;

/* Addresses; a program may store, but not print or shift a pointer. */
u64 seen[16];
/* Addresses of which half is zero, by whether it is the lower one. */
u64 zero[2];
u64 trace;

static __attribute__((always_inline)) void note(u64 what)
{
	trace = trace * 31 + what;
}

static __attribute__((always_inline)) u64 is_low_zero(const void *pointer)
{
	register const void *in_r1 asm("r1") = pointer;
	register u64 is_zero asm("r0");

	asm volatile("r0 = 1; if w1 == 0 goto +1; r0 = 0" : "=r"(is_zero) : "r"(in_r1));
	return is_zero;
}

static __attribute__((always_inline)) void look(int place, const void *pointer)
{
	seen[place] = (u64)pointer;
	zero[1] += is_low_zero(pointer);
	if (*(volatile u32 *)((u8 *)&seen[place] + 4) == 0)
		zero[0]++;
}

static __attribute__((noinline)) int callee(int place)
{
	volatile u64 local = 0;

	if (place == 2)
		look(2, (void *)&local);
	return local;
}

SEC("tc")
int of_tc(struct __sk_buff *skb)
{
	volatile u64 local = 1;
	u64 key = local;
	u8 value[20] = { 7 };
	u32 index = 1;
	void *found;

	look(0, skb);
	look(1, (void *)&local);
	callee(2);
	look(3, (void *)(long)skb->data);
	look(4, (void *)(long)skb->data_end);
	look(5, &array);
	look(6, &hash);
	found = map_lookup_elem(&array, &index);
	if (found)
		look(7, found);
	map_update_elem(&hash, &key, value, 0);
	found = map_lookup_elem(&hash, &key);
	if (found)
		look(8, found);
	found = map_lookup_elem(&percpu, &index);
	if (found)
		look(9, found);
	found = ringbuf_reserve(&ring, 16, 0);
	if (found) {
		look(10, found);
		ringbuf_discard(found, 0);
	}
	index = 0;
	found = map_lookup_elem(&outer, &index);
	if (found)
		look(11, found);
	/* Callers lie above what they call, the end of a packet behind its start. */
	return zero[0] * 256 + zero[1] * 16 + (seen[1] > seen[2]) * 2 + (seen[4] > seen[3]);
}

SEC("xdp")
int of_xdp(struct xdp_md *ctx)
{
	look(0, ctx);
	look(3, (void *)(long)ctx->data);
	look(4, (void *)(long)ctx->data_end);
	look(5, (void *)(long)ctx->data_meta);
	return zero[0] * 256 + zero[1] * 16 + (seen[3] == seen[5]) * 2 + (seen[4] > seen[3]);
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_map {
	enum bpf_map_type map_type;
	u32 key_size, value_size, max_entries, map_flags, id;
	u64 map_extra;
	int numa_node;
	char name[16];
};

struct bpf_array {
	struct bpf_map map;
	u32 elem_size, index_mask;
};

struct bpf_htab {
	struct bpf_map map;
	u32 n_buckets, elem_size;
};

struct lpm_trie {
	struct bpf_map map;
	u64 max_prefixlen, data_size;
};

struct bpf_queue_stack {
	struct bpf_map map;
	u32 size;
};

struct net_device {
	int ifindex;
	u32 mtu;
};
#pragma clang attribute pop

static __attribute__((always_inline)) void note_map(struct bpf_map *map)
{
	note(map->map_type);
	note(map->key_size);
	note(map->value_size);
	note(map->max_entries);
	note(map->map_flags);
	note(map->map_extra);
	note(map->numa_node);
	note(map->id != 0);
}

/* What lies behind pointers to maps. */
SEC("xdp")
int of_maps(struct xdp_md *ctx)
{
	u32 index = 0;
	struct bpf_map *found;

	note_map((struct bpf_map *)&array);
	note(((struct bpf_map *)&array)->name[0]);
	note(((struct bpf_map *)&array)->name[5]);
	note(((struct bpf_array *)&array)->elem_size);
	note(((struct bpf_array *)&array)->index_mask);
	note_map((struct bpf_map *)&percpu);
	note(((struct bpf_array *)&percpu)->elem_size);
	note(((struct bpf_array *)&percpu)->index_mask);
	note_map((struct bpf_map *)&hash);
	note(((struct bpf_htab *)&hash)->n_buckets);
	note(((struct bpf_htab *)&hash)->elem_size);
	note_map((struct bpf_map *)&lru);
	note(((struct bpf_htab *)&lru)->n_buckets);
	note(((struct bpf_htab *)&lru)->elem_size);
	note_map((struct bpf_map *)&trie);
	note(((struct lpm_trie *)&trie)->max_prefixlen);
	note(((struct lpm_trie *)&trie)->data_size);
	note_map((struct bpf_map *)&queue);
	note(((struct bpf_queue_stack *)&queue)->size);
	note_map((struct bpf_map *)&ring);
	note_map((struct bpf_map *)&outer);
	found = map_lookup_elem(&outer, &index);
	if (found) {
		note_map(found);
		note(((struct bpf_array *)found)->elem_size);
	}
	index = 1;
	note(map_lookup_elem(&outer, &index) == 0);
	return trace & 0x7fffffff;
}

extern void *bpf_rdonly_cast(const void *object, u32 type) __attribute__((section(".ksyms")));

/* Numbers that are made pointers, where nothing is. */
u64 where = 8;

SEC("tc")
int of_casts(struct __sk_buff *skb)
{
	u64 at = where;
	u32 type = __builtin_btf_type_id(*(struct net_device *)0, 1);
	struct net_device *device = bpf_rdonly_cast((void *)at, type);
	u8 *bytes = bpf_rdonly_cast((void *)at, 0);

	note(device->ifindex);
	note(device->mtu);
	note(bytes[3]);
	return trace + 3;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
