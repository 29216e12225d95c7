/* What cilium/ebpf takes: prefixes of section names, static programs, calls of functions in program
 * sections, maps in sections `maps/NAME`, values of `pinning` for the application, maps that it
 * completes, and constants that it patches into the instructions. */
#include "../objects/program.h"

struct bpf_map_def {
	u32 type, key_size, value_size, max_entries, flags, unused[2];
};

struct bpf_map_def SEC("maps/addresses") addresses = { 1, 4, 4, 128, 0 };

/* PERF_EVENT_ARRAY without sizes. */
struct {
	NUMBER(type, 4);
} events SEC(".maps");

struct {
	NUMBER(type, 2);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, u64);
	NUMBER(pinning, 16);
} replaced SEC(".maps");

struct inner {
	NUMBER(type, 2);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} first SEC(".maps"), second SEC(".maps");

struct {
	NUMBER(type, 12);
	NUMBER(max_entries, 4);
	NUMBER(key_size, 4);
	struct inner *values[];
} outer SEC(".maps") = {
	.values = { [0] = &first, [3] = &second },
};

const volatile u32 mask = 7;
u32 calls;

/* A symbol that no file defines: the application patches it. */
static u64 node_id(void)
{
	u64 value;

	asm volatile("%0 = NODE_ID ll" : "=r"(value));
	return value;
}

static NOINLINE int zeta(void *map)
{
	u32 key = 0;

	return map_lookup(map, &key) != 0;
}

static NOINLINE int alpha(u64 x)
{
	calls += x & 1;
	return x & mask;
}

static NOINLINE int middle(u64 x)
{
	return alpha(x) + zeta(&replaced);
}

/* A program that others call. */
SEC("tc/shared")
NOINLINE int shared(void *ctx)
{
	return zeta(&addresses) + alpha(node_id());
}

/* A static program beside a global one in a section. */
SEC("xdp/entry")
static NOINLINE int helper(void *ctx)
{
	return middle(ktime_get_ns());
}

SEC("xdp/entry")
int entry(void *ctx)
{
	return helper(ctx) + zeta(&outer) + shared(ctx);
}

SEC("classifier_from_host")
int from_host(void *ctx)
{
	return zeta(&events);
}

SEC("cgroup/connect4/v2")
int connect(void *ctx)
{
	return 1;
}

SEC("fentry/do_exit")
int on_exit(void *ctx)
{
	return 0;
}

SEC("unknown")
int untyped(void *ctx)
{
	return alpha(1);
}
