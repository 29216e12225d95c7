/*
 * One operation on a timer in a value of one of three maps, as the packet says: after the
 * Ethernet and IPv4 headers are operation, map, key, callback, time and flags.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c timers.bpf.c && llvm-strip-19 -g timers.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

enum { MAP_TYPE_HASH = 1, MAP_TYPE_ARRAY = 2, MAP_TYPE_LRU_HASH = 9 };

struct __sk_buff {
	u32 len, pkt_type, mark;
};

struct xdp_md {
	u32 data, data_end;
};

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const trace_printk)(const char *format, u32 size, ...) = (void *)6;
static long (*const skb_load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;
static long (*const timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static long (*const timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const timer_start)(struct bpf_timer *timer, u64 nanoseconds, u64 flags) = (void *)171;
static long (*const timer_cancel)(struct bpf_timer *timer) = (void *)172;

/* Timers are for programs under a compatible licence only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define HEADERS 34

struct command {
	u32 operation;
	u32 map;
	u32 key;
	u32 callback;
	u64 time;
	u64 flags;
};

enum operation { INIT, SET_CALLBACK, START, CANCEL, UPDATE, DELETE };

struct element {
	u64 calls;
	u64 seen;
	struct bpf_timer timer;
	u64 last;
};

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct element);
} array SEC(".maps");

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct element);
} hash SEC(".maps");

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct element);
} lru SEC(".maps");

/* Results of operations in callbacks. */
u64 in_callback[8];

/* Counts. */
static int count(void *map, u32 *key, struct element *value)
{
	value->calls += 1;
	value->seen = value->seen * 31 + *key;
	return 0;
}

/* Starts itself again twice. */
static int again(void *map, u32 *key, struct element *value)
{
	value->calls += 100;
	if (value->last < 2) {
		value->last += 1;
		in_callback[0] += timer_start(&value->timer, 0, 0);
	} else {
		value->last = 0;
	}
	return 0;
}

/* Tries to cancel itself, then removes its own entry, or updates it. */
static int ends(void *map, u32 *key, struct element *value)
{
	value->calls += 10000;
	in_callback[1] = timer_cancel(&value->timer);
	in_callback[2] = map_delete(map, key);
	in_callback[3] += 1;
	return 0;
}

/* What happens with one element, written for each map as the verifier has it. */
#define OPERATE(map) \
	static __always_inline long operate_##map(struct command *command) \
	{ \
		struct element fresh = { .calls = command->time }; \
		struct element *element; \
 \
		if (command->operation == UPDATE) \
			return map_update(&map, &command->key, \
						   &fresh, command->flags); \
		if (command->operation == DELETE) \
			return map_delete(&map, &command->key); \
		element = map_lookup(&map, &command->key); \
		if (!element) \
			return 1000; \
		switch (command->operation) { \
		case INIT: \
			return timer_init(&element->timer, &map, \
					      command->flags); \
		case SET_CALLBACK: \
			if (command->callback == 0) \
				return timer_set_callback(&element->timer, \
							      count); \
			if (command->callback == 1) \
				return timer_set_callback(&element->timer, \
							      again); \
			return timer_set_callback(&element->timer, ends); \
		case START: \
			return timer_start(&element->timer, command->time, \
					       command->flags); \
		case CANCEL: \
			return timer_cancel(&element->timer); \
		} \
		return 2000; \
	}

OPERATE(array)
OPERATE(hash)
OPERATE(lru)

SEC("tc")
int operate(struct __sk_buff *skb)
{
	struct command command;

	if (skb_load_bytes(skb, HEADERS, &command, sizeof(command)))
		return 3000;
	if (command.map == 0)
		return operate_array(&command);
	if (command.map == 1)
		return operate_hash(&command);
	return operate_lru(&command);
}

static int tick(void *map, u32 *key, struct element *value)
{
	const char fired[] = "fired %llu";

	value->calls += 1;
	value->last = ktime_get_ns();
	trace_printk(fired, sizeof(fired), value->last);
	if (value->calls % 4)
		timer_start(&value->timer, 1000, 0);
	return 0;
}

/* Starts the first timer of the array for the time behind the headers, from now. It is
 * started again three times, each a microsecond later.
 */
SEC("xdp")
int trace(struct xdp_md *ctx)
{
	const char started[] = "start %llu";
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct element *element;
	u32 key = 0;
	u64 *span = data + HEADERS + 6;

	if ((void *)(span + 1) > end)
		return 0;
	element = map_lookup(&array, &key);
	if (!element)
		return 0;
	timer_init(&element->timer, &array, 1);
	timer_set_callback(&element->timer, tick);
	timer_start(&element->timer, *span, 0);
	trace_printk(started, sizeof(started), ktime_get_ns());
	return 2;
}

static int restart(void *map, u32 *key, struct element *value)
{
	timer_start(&value->timer, 0, 0);
	return 0;
}

/* Starts a timer that starts itself again for the time at which it fires. */
SEC("xdp")
int forever(struct xdp_md *ctx)
{
	struct element *element;
	u32 key = 1;

	element = map_lookup(&array, &key);
	if (!element)
		return 0;
	timer_init(&element->timer, &array, 1);
	timer_set_callback(&element->timer, restart);
	timer_start(&element->timer, 0, 0);
	return 2;
}
