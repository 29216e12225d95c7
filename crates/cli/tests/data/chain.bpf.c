/*
 * A program that a tail call enters, with a read that no check comes before: a trap where
 * programs run unverified.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c chain.bpf.c && llvm-strip-19 -g chain.bpf.o
 */
typedef unsigned char u8;
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) typeof(value) *name[]

enum { PROG_ARRAY = 3, PASS = 2 };

static long (*const bpf_tail_call)(void *ctx, void *map, u32 index) = (void *)12;

struct xdp_md {
	u32 data;
	u32 data_end;
};

int second(struct xdp_md *ctx);

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, 4);
	__array(values, int(void *));
} steps SEC(".maps") = {
	.values = { (void *)&second },
};

SEC("xdp")
int second(struct xdp_md *ctx)
{
	u8 *start = (u8 *)(long)ctx->data;

	return start[100];
}

SEC("xdp")
int entry(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &steps, 0);
	return PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
