/* Drops UDP to port 53, and passes fragments, which have no ports. Bug: the mask of the offset is not swapped. */
#include "planted.h"

SEC("xdp")
int fragment(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct ports *ports;

	if (!FITS(ip, end) || ether->type != swap16(IPV4) || ip->protocol != UDP || ip->ihl != 5)
		return PASS;
	if (ip->fragment & 0x1fff)
		return PASS;
	ports = (void *)(ip + 1);
	if (!FITS(ports, end))
		return PASS;
	return ports->to == swap16(53) ? DROP : PASS;
}
