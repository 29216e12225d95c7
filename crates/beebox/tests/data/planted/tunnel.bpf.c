/* Drops packets to 203.0.113.7 in GRE. Bug: the key in front of the inner packet is not skipped. */
#include "planted.h"

struct gre {
	u16 flags;
	u16 type;
};

SEC("xdp")
int tunnel(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1), *inner;
	struct gre *gre = (void *)(ip + 1);

	if (!FITS(gre, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != GRE)
		return PASS;
	if (gre->type != swap16(IPV4))
		return PASS;
	if (gre->flags & swap16(0xd0ff))
		return PASS;
	inner = (void *)(gre + 1);
	if (!FITS(inner, end))
		return PASS;
	return inner->to == 0x077100cb ? DROP : PASS;
}
