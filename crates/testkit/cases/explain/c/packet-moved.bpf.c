/* The packet gets room for a tag, and the old pointers are used. */
#include "explain.h"

SEC("xdp")
int packet_moved(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;

	if (data + sizeof(*eth) + 4 > data_end)
		return XDP_PASS;
	if (xdp_adjust_head(ctx, -4))
		return XDP_DROP;
	eth->type = 0x0081;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
