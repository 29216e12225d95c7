/* What libbpf before 1.0 takes: definitions in a section `maps`, with the types of key and value
 * beside them, and names of sections that only begin with a known one. */
#include "../objects/program.h"

struct bpf_map_def {
	u32 type, key_size, value_size, max_entries, flags;
};

struct counter {
	u64 packets, bytes;
};

struct bpf_map_def SEC("maps") counters = { 2, 4, sizeof(struct counter), 8, 0 };
/* A map without types. */
struct bpf_map_def SEC("maps") seen = { 1, 4, 8, 64, 1 };

/* BPF_ANNOTATE_KV_PAIR of libbpf. */
struct ____btf_map_counters {
	u32 key;
	struct counter value;
};
struct ____btf_map_counters SEC(".maps.counters") ____btf_map_counters = {};

/* A declared map beside them. */
struct {
	NUMBER(type, 2);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} total SEC(".maps");

const volatile u32 slot = 3;

static NOINLINE int count(void *map, u32 key)
{
	u64 *value = map_lookup(map, &key);

	return value ? *value & 1 : 0;
}

SEC("xdp_count")
int count_frames(void *ctx)
{
	return count(&counters, slot) + 1;
}

SEC("classifier/ingress")
int classify(void *ctx)
{
	return count(&total, 0);
}

SEC("socket1")
int filter(void *ctx)
{
	return count(&seen, 1);
}

SEC("cgroup/connect4_proxy")
int connect(void *ctx)
{
	return 1;
}

SEC("xdp_devmap/egress")
int egress(void *ctx)
{
	return 2;
}

/* No definition is a prefix of these. */
SEC("tc_ingress")
int untyped(void *ctx)
{
	return 0;
}
