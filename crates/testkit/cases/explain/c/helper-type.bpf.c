/* A helper of packets with a socket buffer, which XDP has not. */
#include "explain.h"

SEC("xdp")
int helper_type(struct xdp_md *ctx)
{
	u32 word = 0;

	if (skb_load_bytes(ctx, 12, &word, sizeof(word)))
		return XDP_PASS;
	return word == 8 ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
