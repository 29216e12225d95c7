/* A loop over all bytes of a packet, with a branch for each. */
#include "explain.h"

SEC("xdp")
int loop_packet(struct xdp_md *ctx)
{
	u8 *at = (void *)(long)ctx->data;
	u8 *end = (void *)(long)ctx->data_end;
	u32 zeros = 0, ones = 0;

	for (int i = 0; i < 9000; i++) {
		if (at + i + 1 > end)
			break;
		if (at[i] == 0)
			zeros++;
		else if (at[i] == 1)
			ones += zeros;
	}
	return ones > 100 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
