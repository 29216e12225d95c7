/*
 * A long precision history with many requests on converging paths.
 *
 * One unknown 64-bit number is read from a map, taken through a chain of
 * arithmetic twice, compared with 1,200 constants in pairs whose branches join
 * again, and then with 500 more. Each comparison with a constant makes the
 * verifier request precision for the number, and each request walks the history
 * backwards: the program measures how often the same history is visited.
 *
 * Needs no header. Build:
 *   clang -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c backtracking.bpf.c && llvm-strip -g backtracking.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_ARRAY = 2 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;

struct __sk_buff;

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} numbers SEC(".maps");

#define CHAIN()     \
	x += 1;     \
	x *= 2;     \
	x -= 1;     \
	x ^= 0x55;  \
	x += 1;     \
	x *= 2;     \
	x -= 1;     \
	x ^= 0xaa

#define PAIR(n)               \
	if (x == (n))         \
		x += 1;       \
	if (x == (n) + 1)     \
		x -= 1;
#define PAIRS_2(n) PAIR(n) PAIR((n) + 2)
#define PAIRS_4(n) PAIRS_2(n) PAIRS_2((n) + 4)
#define PAIRS_8(n) PAIRS_4(n) PAIRS_4((n) + 8)
#define PAIRS_24(n) PAIRS_8(n) PAIRS_8((n) + 16) PAIRS_8((n) + 32)
#define PAIRS_120(n) \
	PAIRS_24(n) PAIRS_24((n) + 48) PAIRS_24((n) + 96) PAIRS_24((n) + 144) PAIRS_24((n) + 192)
#define PAIRS_600(n) \
	PAIRS_120(n) PAIRS_120((n) + 240) PAIRS_120((n) + 480) PAIRS_120((n) + 720) PAIRS_120((n) + 960)

SEC("tc")
int backtracking(struct __sk_buff *skb)
{
	u32 key = 0;
	u64 *number = map_lookup_elem(&numbers, &key);
	u64 x;
	int i;

	if (!number)
		return 0;
	x = *number;
	CHAIN();
	CHAIN();
	PAIRS_600(0)
#pragma clang loop unroll(full)
	for (i = 0; i < 500; i++)
		if (x == 2000 + i)
			x += 1;
	return x;
}

char _license[] SEC("license") = "Dual MIT/GPL";
