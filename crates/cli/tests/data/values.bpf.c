/*
 * Programs whose values `beebox run --why` shall show as they are: numbers with signs, bit fields,
 * floating point, 16 bytes, places in a frame that no instruction names, parts of map values, and
 * arguments that the compiler drops.
 *
 * Needs no header. Keeps its debug information; values_stripped.bpf.o is the same without. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c values.bpf.c
 *   llvm-strip-19 -g values.bpf.o -o values_stripped.bpf.o
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -gz -ffile-compilation-dir=. -c values.bpf.c \
 *     -o values_compressed.bpf.o
 */
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) typeof(value) *name[]
#define NOINLINE __attribute__((noinline))

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const for_each_map_elem)(void *map, void *callback, void *context,
				       u64 flags) = (void *)164;

enum action { ABORTED, DROP, PASS };
enum sign { MINUS = -1, PLUS = 1 };

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
};

struct parts {
	s32 number;
	u8 low : 2, high : 6;
	s8 small;
	s16 middle;
	union {
		u32 word;
		u8 bytes[4];
	} either;
};

struct fields {
	u32 first : 5;
	s32 second : 7;
	u32 third : 20;
};

struct {
	__uint(type, 2);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct parts);
} table SEC(".maps");

struct inner {
	__uint(type, 2);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} held SEC(".maps");

struct {
	__uint(type, 12);
	__uint(max_entries, 2);
	__type(key, u32);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [1] = &held } };

struct parts global;

/* Bytes of the frame that no instruction names: the buffer is reached by an index alone. */
SEC("xdp")
int frame(struct xdp_md *ctx)
{
	u8 *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	volatile u32 before = 11;
	volatile u8 buffer[24];

	if (at + 14 > end)
		return PASS;
	buffer[(at[0] & 7) + 16] = 5;
	before = 22;
	if (buffer[20] == 5)
		before = 33;
	return before == 33 ? DROP : PASS;
}

SEC("xdp")
int numbers(struct xdp_md *ctx)
{
	volatile struct fields fields;
	volatile s8 small;
	volatile char character;
	volatile float single;
	volatile double twice;
	volatile _Bool yes;
	volatile enum sign sign;
	volatile __int128 wide;
	volatile s64 last;

	fields.first = 3;
	fields.second = -2;
	fields.third = 77;
	small = -4;
	character = -1;
	single = 1.5f;
	twice = -2.25;
	yes = 1;
	sign = MINUS;
	wide = -5;
	last = -6;
	return small + character == -5 ? DROP : PASS;
}

static NOINLINE s8 narrow(u8 value)
{
	return (s8)(value + 100);
}

static NOINLINE int dropped(int unused, s8 first, s16 second)
{
	if (first < second)
		return first - 8;
	return second;
}

__attribute__((noinline)) int whole(int more, s8 used)
{
	return used * 2 + more;
}

SEC("xdp")
int calls(struct xdp_md *ctx)
{
	u8 *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 key = 1;
	struct parts *parts;
	int sum;

	if (at + 14 > end)
		return PASS;
	sum = narrow(at[0] + 200) + dropped(9, at[1] - 1, at[2] + 3) + whole(7, at[3] - 3);
	parts = map_lookup_elem(&table, &key);
	if (!parts)
		return ABORTED;
	parts->high = 5;
	parts->small = -7;
	parts->either.bytes[2] = 9;
	parts->number = sum;
	global.high = 33;
	return DROP;
}

static long visit(void *map, u32 *key, struct parts *parts, u32 *count)
{
	parts->middle = *key - 2;
	return 0;
}

SEC("tc")
int skb(struct __sk_buff *skb)
{
	u32 key = 1, count = 0;
	u64 *value;
	void *map;

	skb->mark = 77;
	for_each_map_elem(&table, visit, &count, 0);
	map = map_lookup_elem(&outer, &key);
	if (!map)
		return 2;
	key = 0;
	value = map_lookup_elem(map, &key);
	if (value)
		*value = 41;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
