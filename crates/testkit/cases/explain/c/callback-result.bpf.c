/* The callback of a loop returns what ends neither the round nor the loop. */
#include "explain.h"

static long each(u32 index, u32 *sum)
{
	*sum += index;
	return -1;
}

SEC("xdp")
int callback_result(struct xdp_md *ctx)
{
	u32 sum = 0;

	loop(ctx->rx_queue_index, each, &sum, 0);
	return sum > 10 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
