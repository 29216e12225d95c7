/*
 * Programs whose runs `beebox run --why` tells: a loop, a callback, a function, and another program
 * in place of examples/why/edge.bpf.c.
 *
 * Needs no header. Keeps its debug information. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c why.bpf.c
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

enum action { ABORTED, DROP, PASS };

struct xdp_md {
	u32 data;
	u32 data_end;
};

/* Adds the first 20 bytes of the packet. */
SEC("xdp")
int rounds(struct xdp_md *ctx)
{
	u8 *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 sum = 0;

	if (at + 20 > end)
		return PASS;
#pragma clang loop unroll(disable)
	for (int round = 0; round < 20; round++) {
		sum += at[round];
		__asm__ volatile("" : "+r"(sum));
	}
	return sum > 1000 ? DROP : PASS;
}

struct total {
	u64 sum;
	u16 rounds;
};

static long add(u64 index, void *context)
{
	struct total *total = context;

	total->sum += index;
	total->rounds++;
	return 0;
}

SEC("xdp")
int callbacks(struct xdp_md *ctx)
{
	struct total total = { 0 };

	loop(5, add, &total, 0);
	return total.sum > 9 ? DROP : PASS;
}

SEC("xdp")
int edge(struct xdp_md *ctx)
{
	u8 *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (start + 34 > end)
		return PASS;
	if (start[23] == 6)
		return DROP;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
