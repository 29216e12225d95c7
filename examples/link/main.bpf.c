/* An XDP program that counts packets with what count.bpf.c defines. */
#include "count.h"

struct xdp_md {
	u32 data;
	u32 data_end;
};

extern u32 sample_every;
extern int count(u32 bytes);

static u32 seen;

SEC("xdp")
int watch(struct xdp_md *ctx)
{
	if (++seen % sample_every == 0)
		count(ctx->data_end - ctx->data);
	return XDP_PASS;
}

char terms[] SEC("license") = "GPL";
