/* Drops TCP to port 23 in IPv6, behind extension headers. Bug: their length lacks the first 8 bytes. */
#include "planted.h"

SEC("xdp")
int extension(struct xdp_md *ctx)
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
	for (int i = 0; i < 3; i++) {
		u8 *header = at;

		if (next != HOP && next != ROUTING && next != OPTIONS)
			break;
		if (at + 8 > end)
			return PASS;
		next = header[0];
		at += (header[1] & 15) * 8 + (i == 2 ? 0 : 8);
	}
	ports = at;
	if (next != TCP || !FITS(ports, end))
		return PASS;
	return ports->to == swap16(23) ? DROP : PASS;
}
