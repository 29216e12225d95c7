/*
 * What a debugger meets: loops, functions that are inlined and that are not, callbacks of helpers and of a
 * timer, maps in a map, a queue, entries that are deleted, a tail call, signed numbers and bit-fields.
 *
 * Needs no header. Keeps its debug information. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c tour.bpf.c
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __noinline __attribute__((noinline))
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) typeof(value) *name[]

enum {
	MAP_TYPE_HASH = 1,
	MAP_TYPE_ARRAY = 2,
	MAP_TYPE_PROG_ARRAY = 3,
	MAP_TYPE_ARRAY_OF_MAPS = 12,
	MAP_TYPE_QUEUE = 22,
};

enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data, data_end;
};

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u32 (*const get_smp_processor_id)(void) = (void *)8;
static long (*const tail_call)(void *context, void *map, u32 index) = (void *)12;
static long (*const map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*const map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const for_each_map_elem)(void *map, void *callback, void *context, u64 flags) = (void *)164;
static long (*const timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static long (*const timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const timer_start)(struct bpf_timer *timer, u64 nanoseconds, u64 flags) = (void *)171;
static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

struct flow {
	u64 packets;
	int balance;
	u32 state : 3;
	int drift : 5;
};

struct clock {
	u64 fired;
	struct bpf_timer timer;
};

struct inner {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} left SEC(".maps"), right SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner);
} sides SEC(".maps") = {
	.values = { &left, &right },
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u16);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

struct {
	__uint(type, MAP_TYPE_QUEUE);
	__uint(max_entries, 4);
	__type(value, u32);
} waiting SEC(".maps");

int last(struct xdp_md *ctx);

struct {
	__uint(type, MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, int(void *));
} jumps SEC(".maps") = {
	.values = { (void *)&last },
};

u64 huge = 0xfffffffffffffff0ull;
u32 wide = 0xfffffff0u;
int below = -5;
u64 sum;
u64 ticks;

struct visit {
	u64 seen;
	u32 most;
};

static int each(void *map, u16 *key, struct flow *flow, struct visit *visit)
{
	visit->seen += flow->packets;
	if (*key > visit->most)
		visit->most = *key;
	return 0;
}

static int tick(void *map, u32 *key, struct clock *clock)
{
	clock->fired++;
	ticks += 10;
	return 0;
}

static __noinline u64 gcd(u64 a, u64 b)
{
	for (u32 i = 0; i < 16 && b; i++) {
		u64 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static __always_inline void drain(struct flow *flow)
{
	flow->balance -= 3;
	flow->drift = -2;
}

static __always_inline void touch(struct flow *flow)
{
	flow->packets++;
	flow->state = 5;
	drain(flow);
}

static long add(u64 index, u64 *total)
{
	*total += index;
	return 0;
}

SEC("xdp")
int tour(struct xdp_md *ctx)
{
	u8 *start = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end;
	struct visit visit = {};
	struct flow first = { .packets = 1 };
	u32 zero = 0, popped;
	u64 total = 0;
	u16 port;

	if (start + 38 > end)
		return XDP_DROP;
	port = __builtin_bswap16(*(u16 *)(start + 36));

	struct flow *flow = map_lookup_elem(&flows, &port);

	if (flow)
		touch(flow);
	else
		map_update_elem(&flows, &port, &first, 0);
	ticks += get_smp_processor_id();
	for_each_map_elem(&flows, each, &visit, 0);
	loop(4, add, &total, 0);
	sum += total + gcd(visit.seen + 6, 4);

	struct inner *side = map_lookup_elem(&sides, &zero);

	if (side) {
		u64 *count = map_lookup_elem(side, &zero);

		if (count)
			*count += 2;
	}

	struct clock *clock = map_lookup_elem(&clocks, &zero);

	if (clock && !clock->fired) {
		timer_init(&clock->timer, &clocks, 1);
		timer_set_callback(&clock->timer, tick);
		timer_start(&clock->timer, 0, 0);
	}
	map_push_elem(&waiting, &zero, 0);
	if (!map_pop_elem(&waiting, &popped))
		sum += popped;
	if (port == 53)
		map_delete_elem(&flows, &port);
	tail_call(ctx, &jumps, 0);
	return XDP_DROP;
}

SEC("xdp")
int last(struct xdp_md *ctx)
{
	below -= 7;
	wide++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
