/*
 * Blocks in which the compiler puts instructions without a line of their own, behind code of another line.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c lineless.bpf.c
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;

struct xdp_md {
	u32 data, data_end;
};

struct {
	__uint(type, 2);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

static __attribute__((always_inline)) void count(u32 which)
{
	u64 *value = map_lookup_elem(&counts, &which);

	if (value)
		(*value)++;
}

SEC("xdp")
int lineless(struct xdp_md *ctx)
{
	u8 *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u8 *next = at + 14;
	u8 kind = 0;

	if (next > end) {
		count(0);
		return 1;
	}
	for (int i = 0; i < 3; i++) {
		if (next + 2 > end)
			break;
		kind = next[0];
		if (kind == 6 || kind == 17)
			break;
		next += 2 + (next[1] & 7);
	}
	switch (kind) {
	case 6:
		count(1);
		return 3;
	case 17:
		count(2);
		return 3;
	}
	return 2;
}

char LICENSE[] SEC("license") = "GPL";
