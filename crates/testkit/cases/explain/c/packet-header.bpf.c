/* The Ethernet header is compared with the end, the IP header is not. */
#include "explain.h"

SEC("xdp")
int packet_header(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	struct ip *ip = data + sizeof(*eth);

	if (data + sizeof(*eth) > data_end)
		return XDP_PASS;
	if (eth->type != 0x0008)
		return XDP_PASS;
	if (ip->protocol == 6)
		return XDP_DROP;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
