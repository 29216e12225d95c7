/* A global function is verified by its types: its argument may be null. */
#include "explain.h"

struct point {
	u32 x;
	u32 y;
};

noinline int length(struct point *point)
{
	return point->x + point->y;
}

SEC("xdp")
int global_argument(struct xdp_md *ctx)
{
	struct point point = { ctx->ingress_ifindex, ctx->rx_queue_index };

	return length(&point) > 10 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
