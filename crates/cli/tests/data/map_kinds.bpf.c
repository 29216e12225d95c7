/* Programs of an object with maps that kernels may lack. */
#define SEC(name) __attribute__((section(name), used))
#define VALUE_EXISTS 0

typedef unsigned int u32;
typedef unsigned long long u64;

static long (*peek)(void *map, void *value) = (void *)89;
static void *(*lookup)(void *map, const void *key) = (void *)1;

enum bpf_map_type___named {
	BPF_MAP_TYPE_BLOOM_FILTER___named = 1,
};

/* Linux 5.16 has Bloom filters. */
struct {
	int (*type)[30];
	int (*max_entries)[16];
	u64 *value;
} seen SEC(".maps");

/* No release has maps of this kind. */
struct {
	int (*type)[99];
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} strange SEC(".maps");

SEC("xdp") int filtered(void *ctx)
{
	u64 value = 7;

	return peek(&seen, &value) ? 1 : 2;
}

/* The same behind a check of the kind. */
SEC("xdp") int filtered_if(void *ctx)
{
	u64 value = 7;

	if (__builtin_preserve_enum_value(
		    *(enum bpf_map_type___named *)BPF_MAP_TYPE_BLOOM_FILTER___named, VALUE_EXISTS))
		return peek(&seen, &value) ? 1 : 2;
	return 2;
}

SEC("xdp") int unknown(void *ctx)
{
	u32 key = 0;

	return lookup(&strange, &key) ? 1 : 2;
}

SEC("xdp") int plain(void *ctx)
{
	return 2;
}
