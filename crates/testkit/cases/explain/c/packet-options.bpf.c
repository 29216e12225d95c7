/* The TCP header comes behind options whose length is in the packet; it is not compared. */
#include "explain.h"

SEC("xdp")
int packet_options(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	struct ip *ip = data + sizeof(struct ethernet);
	struct tcp *tcp;

	if ((void *)(ip + 1) > data_end)
		return XDP_PASS;
	tcp = (void *)ip + ip->ihl * 4;
	if (tcp->to == 0x1600)
		return XDP_DROP;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
