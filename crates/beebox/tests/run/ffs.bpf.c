/*
 * The lowest set bit of 64 words of a packet, by a ladder of halves and by the kernel function
 * bpf_ffs64: the results take the place of each word, the ladder's in the lower half.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c ffs.bpf.c && llvm-strip-19 -g ffs.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
	u32 data, data_end, data_meta;
	u32 ingress_ifindex, rx_queue_index, egress_ifindex;
};

extern u32 bpf_ffs64(u64 value) __attribute__((weak, section(".ksyms")));

/* Index of the lowest set bit of a word that has one. */
static __attribute__((noinline)) u32 ladder(u64 word)
{
	u32 found = 0;

	for (u32 half = 32; half; half /= 2) {
		if (word & ((1ULL << half) - 1))
			continue;
		word >>= half;
		found += half;
	}
	return found;
}

SEC("xdp")
int both(struct xdp_md *ctx)
{
	u64 *words = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if ((void *)(words + 64) > end)
		return 1;
	for (int at = 0; at < 64; at++)
		words[at] = ladder(words[at]) | (u64)bpf_ffs64(words[at]) << 32;
	return 2;
}

SEC("xdp")
int ladders(struct xdp_md *ctx)
{
	u64 *words = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if ((void *)(words + 64) > end)
		return 1;
	for (int at = 0; at < 64; at++)
		words[at] = ladder(words[at]);
	return 2;
}

char _license[] SEC("license") = "GPL";
