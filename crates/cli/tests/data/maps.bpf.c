/*
 * Maps that Linux does not create, each with a program that uses it, maps whose sizes are left to
 * the loader, and a replacement of a function without its target.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c maps.bpf.c && llvm-strip-19 -g maps.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { ARRAY = 2, STACK_TRACE = 7, LRU_HASH = 9, LPM_TRIE = 11, QUEUE = 22 };

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;
static long (*const bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*const bpf_spin_lock)(void *lock) = (void *)93;
static long (*const bpf_spin_unlock)(void *lock) = (void *)94;

struct bpf_spin_lock {
	u32 val;
};

struct locked {
	struct bpf_spin_lock lock;
	u64 count;
};

struct {
	__uint(type, LPM_TRIE);
	__uint(max_entries, 16);
	__type(key, u64);
	__type(value, u32);
} routes SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 16);
	__type(key, u64);
	__type(value, u32);
} counts SEC(".maps");

struct {
	__uint(type, QUEUE);
	__uint(max_entries, 0x3fffffff);
	__uint(value_size, 64);
} backlog SEC(".maps");

struct {
	__uint(type, LRU_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct locked);
} flows SEC(".maps");

struct {
	__uint(type, STACK_TRACE);
	__uint(key_size, 4);
} stacks SEC(".maps");

SEC("xdp") int lookup_route(void *ctx)
{
	u64 key = 0;

	return bpf_map_lookup_elem(&routes, &key) ? 2 : 1;
}

SEC("xdp") int lookup_count(void *ctx)
{
	u64 key = 0;

	return bpf_map_lookup_elem(&counts, &key) ? 2 : 1;
}

SEC("xdp") int push(void *ctx)
{
	u64 value[8] = {};

	return bpf_map_push_elem(&backlog, value, 0) ? 1 : 2;
}

SEC("tc") int lock_flow(void *ctx)
{
	u32 key = 0;
	struct locked *flow = bpf_map_lookup_elem(&flows, &key);

	if (!flow)
		return 0;
	bpf_spin_lock(&flow->lock);
	flow->count++;
	bpf_spin_unlock(&flow->lock);
	return 0;
}

SEC("perf_event") int take_stack(void *ctx)
{
	return bpf_get_stackid(ctx, &stacks, 0) == 3;
}

SEC("freplace/handle") int replace(void *ctx)
{
	return 2;
}

SEC("xdp") int pass(void *ctx)
{
	return 2;
}

char _license[] SEC("license") = "GPL";
