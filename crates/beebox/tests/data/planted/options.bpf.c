/* Drops TCP to port 23. Bug: options of IPv4 are taken for ports. */
#include "planted.h"

SEC("xdp")
int options(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct ports *ports = (void *)(ip + 1);

	if (!FITS(ports, end) || ether->type != swap16(IPV4) || ip->protocol != TCP)
		return PASS;
	return ports->to == swap16(23) ? DROP : PASS;
}
