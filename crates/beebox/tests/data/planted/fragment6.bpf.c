/*
 * Drops UDP to port 53 in IPv6, behind a hop-by-hop and a fragment header. Bug: the reserved byte of a
 * fragment header is taken for its length.
 */
#include "planted.h"

SEC("xdp")
int fragment6(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip6 *ip = (void *)(ether + 1);
	struct ports *ports;
	void *at;
	u8 next;

	if (!FITS(ip, end) || ether->type != swap16(IPV6))
		return PASS;
	next = ip->next;
	at = ip + 1;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 *header = at;

		if (next != HOP && next != FRAGMENT)
			break;
		if (at + 8 > end)
			return PASS;
		if (next == FRAGMENT && (header[2] || header[3] & 0xf8))
			return PASS;
		next = header[0];
		at += 8 + (header[1] & 15) * 8;
	}
	ports = at;
	if (next != UDP || !FITS(ports, end))
		return PASS;
	return ports->to == swap16(53) ? DROP : PASS;
}
