/* Drops TCP to port 3306 in the VXLAN network 7000. Bug: a VLAN tag of the inner frame is not skipped. */
#include "planted.h"

struct udp {
	struct ports ports;
	u16 length;
	u16 checksum;
};

struct vxlan {
	u32 flags;
	u32 network;
};

SEC("xdp")
int vxlan(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data, *inner_ether;
	struct ip *ip = (void *)(ether + 1), *inner;
	struct udp *udp = (void *)(ip + 1);
	struct vxlan *vxlan = (void *)(udp + 1);
	struct ports *ports;

	if (!FITS(vxlan, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != UDP)
		return PASS;
	if (udp->ports.to != swap16(4789) || !(vxlan->flags & 8))
		return PASS;
	if (__builtin_bswap32(vxlan->network) >> 8 != 7000)
		return PASS;
	inner_ether = (void *)(vxlan + 1);
	inner = (void *)(inner_ether + 1);
	ports = (void *)(inner + 1);
	if (!FITS(ports, end) || inner_ether->type != swap16(IPV4) || inner->ihl != 5)
		return PASS;
	return inner->protocol == TCP && ports->to == swap16(3306) ? DROP : PASS;
}
