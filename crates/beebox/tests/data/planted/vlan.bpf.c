/* Drops UDP to port 4444, behind up to two VLAN tags. Bug: the second tag is not looked behind. */
#include "planted.h"

SEC("xdp")
int vlan(struct xdp_md *ctx)
{
	void *at = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = at;
	struct ports *ports;
	struct ip *ip;
	u16 type;

	if (!FITS(ether, end))
		return PASS;
	type = swap16(ether->type);
	at = ether + 1;
	if (type == VLAN || type == QINQ) {
		struct ports *tag = at;

		if (!FITS(tag, end))
			return PASS;
		type = swap16(tag->to);
		at = tag + 1;
	}
	ip = at;
	if (type != IPV4 || !FITS(ip, end) || ip->protocol != UDP || ip->ihl != 5)
		return PASS;
	ports = (void *)(ip + 1);
	if (!FITS(ports, end))
		return PASS;
	return ports->to == swap16(4444) ? DROP : PASS;
}
