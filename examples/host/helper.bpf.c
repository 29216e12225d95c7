/*
 * A program that calls a function of its host (docs/embed.md) as a helper, by a number that the
 * host chooses: it gets the Ethernet header and the length of each packet.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c helper.bpf.c && llvm-strip-19 -g helper.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
	u32 data, data_end, data_meta;
	u32 ingress_ifindex, rx_queue_index, egress_ifindex;
};

static u64 (*const seen)(const void *header, u32 size, u32 length) = (void *)65536;

SEC("xdp")
int count(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if (data + 14 > end)
		return 0;
	return seen(data, 14, end - data);
}

char _license[] SEC("license") = "GPL";
