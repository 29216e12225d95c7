/*
 * A program that calls a function of its host (docs/embed.md): it gets the Ethernet header and
 * the length of each packet. `HostFunction::header` prints host.h.
 *
 * Needs no header but host.h. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c host.bpf.c && llvm-strip-19 -g host.bpf.o
 */
#include "host.h"

typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
	u32 data, data_end, data_meta;
	u32 ingress_ifindex, rx_queue_index, egress_ifindex;
};

/* Returns what the host returns; 0 where there is no such host. */
SEC("xdp")
int count(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if (!host_seen || data + 14 > end)
		return 0;
	return host_seen(data, 14, end - data);
}

char _license[] SEC("license") = "GPL";
