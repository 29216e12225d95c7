/*
 * Programs that meet the limits of a run: an LRU map that is full, a hash that grows to 32 GB, an
 * array of 4 GB, global variables of 2 GB, and loops that take days.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c limits.bpf.c && llvm-strip-19 -g limits.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

enum { MAP_TYPE_HASH = 1, MAP_TYPE_ARRAY = 2, MAP_TYPE_LRU_HASH = 9 };
enum { F_NO_PREALLOC = 1 };

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const loop)(u32 iterations, void *callback, void *context, u64 flags) = (void *)181;

struct page {
	char bytes[4096];
};

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u32);
} recent SEC(".maps");

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1 << 23);
	__uint(map_flags, F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct page);
} growing SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 20);
	__type(key, u32);
	__type(value, struct page);
} wide SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct page);
} one SEC(".maps");

char large[2000000000] SEC(".bss.large");

static long insert(u32 key, void *unused)
{
	map_update(&recent, &key, &key, 0);
	return 0;
}

static long count(u32 key, int *kept)
{
	if (map_lookup(&recent, &key))
		*kept += 1;
	return 0;
}

SEC("xdp") int evict(struct xdp_md *ctx)
{
	int kept = 0;

	loop(259, insert, &kept, 0);
	loop(259, count, &kept, 0);
	return kept;
}

static long put(u32 key, struct page **value)
{
	map_update(&growing, &key, *value, 0);
	return 0;
}

SEC("xdp") int grow(struct xdp_md *ctx)
{
	u32 key = 0;
	struct page *value = map_lookup(&one, &key);

	if (value)
		loop(ctx->ingress_ifindex, put, &value, 0);
	return 2;
}

SEC("xdp") int array(struct xdp_md *ctx)
{
	u32 key = 0;

	return map_lookup(&wide, &key) ? 2 : 1;
}

SEC("xdp") int variables(struct xdp_md *ctx)
{
	large[ctx->ingress_ifindex & 7] = 1;
	return 2;
}

static long add(u32 index, u64 *sum)
{
	*sum += index;
	return 0;
}

static long again(u32 index, u64 *sum)
{
	loop(1 << 23, add, sum, 0);
	return 0;
}

SEC("xdp") int endless(struct xdp_md *ctx)
{
	u64 sum = 0;

	loop(1 << 23, again, &sum, 0);
	return sum ? 2 : 1;
}

char _license[] SEC("license") = "GPL";
