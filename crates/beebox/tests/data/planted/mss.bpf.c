/* Has SYN segments ask for 1400 bytes at most. Bug: NOP is taken for an option of two bytes. */
#include "planted.h"

struct tcp {
	struct ports ports;
	u32 seq;
	u32 ack;
	u8 offset;
	u8 flags;
	u16 window;
	u16 checksum;
	u16 urgent;
};

SEC("xdp")
int mss(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct tcp *tcp = (void *)(ip + 1);
	u8 *option = (void *)(tcp + 1);
	int i, length;

	if (!FITS(tcp, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != TCP)
		return PASS;
	if (!(tcp->flags & 2))
		return PASS;
	length = (tcp->offset >> 4) * 4 - 20;
	for (i = 0; i < 10; i++) {
		if (length < 4 || (void *)(option + 4) > end || option[0] == 0)
			return PASS;
		if (option[0] == 2 && option[1] == 4) {
			if (option[2] << 8 > 1400 - option[3]) {
				option[2] = 1400 >> 8;
				option[3] = 1400 & 0xff;
			}
			return PASS;
		}
		if (option[0] == 1) {
			length -= 2;
			option += 2;
			continue;
		}
		if (option[1] < 2 || option[1] > 40)
			return PASS;
		length -= option[1];
		option += option[1];
	}
	return PASS;
}
