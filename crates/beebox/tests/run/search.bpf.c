/*
 * Programs that search memory around what they are given, by every helper that takes any
 * address. Each word that is read becomes a record of the ring buffer: its distance from the
 * starting point in bytes, the word, and its address.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c search.bpf.c && llvm-strip-19 -g search.bpf.o
 */
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, number) int(*name)[number]
#define __type(name, type) typeof(type) *name
#define __array(name, type) typeof(type) *name[]

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid;
	u32 data, data_end;
};

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static long (*const probe_read)(void *to, u32 size, const void *from) = (void *)4;
static long (*const tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*const probe_read_str)(void *to, u32 size, const void *from) = (void *)45;
static long (*const probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*const probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static void *(*const ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *record, u64 flags) = (void *)132;
static long (*const snprintf)(char *to, u32 size, const char *format, u64 *data,
			      u32 data_len) = (void *)165;
static long (*const loop)(u32 count, void *function, void *context, u64 flags) = (void *)181;

struct found {
	s64 distance;
	u64 word;
	u64 address;
};

struct {
	__uint(type, 27);
	__uint(max_entries, 1 << 20);
} words SEC(".maps");

struct {
	__uint(type, 1);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, u64);
} hash SEC(".maps");

int target(struct __sk_buff *skb);

struct {
	__uint(type, 3);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, int(void *));
} next SEC(".maps") = { .values = { [0] = (void *)&target } };

/* Bytes that are searched on either side, and bytes from one read to the next. */
volatile const u32 reach = 2048;
volatile const u32 step = 8;

enum reader { KERNEL, KERNEL_STR, ANY, ANY_STR, USER, USER_STR, PRINTED_STR, PRINTED_IP };
volatile u32 reader;

/* The starting point as a number. */
volatile u64 start;

static __attribute__((always_inline)) u64 read_word(const char *at, u64 *word, int any)
{
	char text[24] = {};
	u64 arguments[1] = {(u64)at};
	long result;

	switch (reader) {
	case KERNEL:
		return probe_read_kernel(word, 8, at) == 0;
	case KERNEL_STR:
		return probe_read_kernel_str(word, 8, at) > 1;
	case ANY:
		return any && probe_read(word, 8, at) == 0;
	case ANY_STR:
		return any && probe_read_str(word, 8, at) > 1;
	case USER:
		return probe_read_user(word, 8, at) == 0;
	case USER_STR:
		return probe_read_user_str(word, 8, at) > 1;
	case PRINTED_STR:
		result = snprintf(text, sizeof(text), "%s", arguments, 8);
		__builtin_memcpy(word, text, 8);
		return result > 1;
	case PRINTED_IP:
		result = snprintf(text, sizeof(text), "%pi6", arguments, 8);
		__builtin_memcpy(word, text + 1, 8);
		return result > 1;
	}
	return 0;
}

static __attribute__((always_inline)) long one(u64 index, int any)
{
	s64 distance = (s64)(index * step) - (s64)reach;
	struct found *found;
	u64 word = 0;

	if (!read_word((const char *)(start + distance), &word, any))
		return 0;
	found = ringbuf_reserve(&words, sizeof(*found), 0);
	if (!found)
		return 1;
	found->distance = distance;
	found->word = word;
	found->address = start + distance;
	ringbuf_submit(found, 0);
	return 0;
}

static long one_of_any(u64 index, void *unused)
{
	return one(index, 1);
}

static long one_of_kernel(u64 index, void *unused)
{
	return one(index, 0);
}

static __attribute__((noinline)) int search(const void *from)
{
	start = (u64)from;
	loop(2 * reach / step, one_of_kernel, 0, 0);
	start = 0;
	return 0;
}

/* Around a variable of the caller's stack. */
SEC("tc") int stack(struct __sk_buff *skb)
{
	u64 known[4] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333,
			  0x4444444444444444};

	__asm__ volatile("" : : "r"(&known) : "memory");
	search(known);
	return 0;
}

/* Around the context. */
SEC("tc") int context(struct __sk_buff *skb)
{
	search(skb);
	return 0;
}

/* Around the packet. */
SEC("tc") int packet(struct __sk_buff *skb)
{
	search((void *)(long)skb->data);
	return 0;
}

/* Around a value of a map. */
SEC("tc") int value(struct __sk_buff *skb)
{
	u32 key = 7;
	u64 mine = 0x5555555555555555, *found;

	map_update_elem(&hash, &key, &mine, 0);
	found = map_lookup_elem(&hash, &key);
	if (found)
		search(found);
	return 0;
}

/* Around the map itself. */
SEC("tc") int map(struct __sk_buff *skb)
{
	search(&hash);
	return 0;
}

/* After a tail call out of a function, with frames of the program that made it below. */
SEC("tc") int target(struct __sk_buff *skb)
{
	u64 mine = 0x6666666666666666;

	__asm__ volatile("" : : "r"(&mine) : "memory");
	search(&mine);
	return 0;
}

static __attribute__((noinline)) int leave(struct __sk_buff *skb)
{
	u64 left[2] = {0x7777777777777777, 0x7777777777777777};

	__asm__ volatile("" : : "r"(&left) : "memory");
	tail_call(skb, &next, 0);
	return left[0];
}

SEC("tc") int caller(struct __sk_buff *skb)
{
	return leave(skb) & 1;
}

/* Around the arguments of a tracepoint, by the helpers of any address too. */
SEC("raw_tp") int arguments(void *ctx)
{
	start = (u64)ctx;
	loop(2 * reach / step, one_of_any, 0, 0);
	start = 0;
	return 0;
}

/* A pointer on the stack, and behind it a number. */
SEC("tc") int pointers(struct __sk_buff *skb)
{
	struct {
		u64 number;
		void *pointer;
		u64 other;
	} mine = { .number = 0x1212121212121212, .pointer = skb, .other = 0x3434343434343434 };

	__asm__ volatile("" : : "r"(&mine) : "memory");
	search(&mine);
	return 0;
}

char _license[] SEC("license") = "GPL";
