/*
 * Looks for the option "maximum segment size" of TCP. Bug: options without a length are not counted, so
 * that a chain of them costs many instructions.
 */
#include "planted.h"

struct tcp {
	struct ports ports;
	u32 sequence;
	u32 acknowledged;
	u8 offset;
	u8 flags;
	u16 window;
	u16 checksum;
	u16 urgent;
};

SEC("xdp")
int segment(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct tcp *tcp = (void *)(ip + 1);
	u8 *option = (void *)(tcp + 1);

	if (!FITS(tcp, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != TCP)
		return PASS;
	if (tcp->flags != 2)
		return PASS;
	for (int i = 0; i < 12; i++) {
		if ((void *)(option + 2) > end)
			return PASS;
		if (option[0] == 2)
			return option[1] == 4 ? PASS : DROP;
		option += option[0] < 2 ? 1 : option[1] & 31;
	}
	return PASS;
}
