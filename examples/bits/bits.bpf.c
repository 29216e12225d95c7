/*
 * Bit operations of Beebox (docs/kfuncs.md) on the first eight bytes of a packet: the results
 * take its place. Under a kernel without them, `first` finds the lowest set bit by halves.
 *
 * Needs no header but bpf_bits.h. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c bits.bpf.c && llvm-strip-19 -g bits.bpf.o
 */
#include "bpf_bits.h"

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data, data_end, data_meta;
	u32 ingress_ifindex, rx_queue_index, egress_ifindex;
};

static int ladder(u64 word)
{
	int found = 0;

	if (!word)
		return 64;
	for (int half = 32; half; half /= 2) {
		if (word & ((1ULL << half) - 1))
			continue;
		word >>= half;
		found += half;
	}
	return found;
}

/* Writes the index of the lowest set bit of the first word into the second. */
SEC("xdp")
int first(struct xdp_md *ctx)
{
	u64 *words = (u64 *)(long)ctx->data;

	if (words + 2 > (u64 *)(long)ctx->data_end)
		return XDP_DROP;
	if (bpf_ksym_exists(bpf_ffs64))
		words[1] = bpf_ffs64(words[0]);
	else
		words[1] = ladder(words[0]);
	return XDP_PASS;
}

/* Writes what each operation makes of the first word, with the second as count. */
SEC("xdp")
int all(struct xdp_md *ctx)
{
	u64 *words = (u64 *)(long)ctx->data;
	u64 word;
	u32 count;

	if (words + 8 > (u64 *)(long)ctx->data_end)
		return XDP_DROP;
	word = words[0];
	count = words[1];
	words[0] = bpf_ffs64(word);
	words[1] = bpf_ctz64(word);
	words[2] = bpf_clz64(word);
	words[3] = bpf_fls64(word);
	words[4] = bpf_popcnt64(word);
	words[5] = bpf_bitrev64(word);
	words[6] = bpf_rol64(word, count);
	words[7] = bpf_ror64(word, count);
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
