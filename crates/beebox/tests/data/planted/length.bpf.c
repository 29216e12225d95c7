/*
 * Keeps the longest message of a protocol over UDP. Bug: a length below 8 becomes a large one.
 */
#include "planted.h"

struct udp {
	struct ports ports;
	u16 length;
	u16 checksum;
	u32 magic;
};

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} longest SEC(".maps");

SEC("xdp")
int length(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct udp *udp = (void *)(ip + 1);
	u32 key = 0, bytes;
	u32 *most;

	if (!FITS(udp, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != UDP)
		return PASS;
	if (udp->ports.to != swap16(9999) || udp->magic != 0x6b637062)
		return PASS;
	bytes = swap16(udp->length) - 8;
	most = map_lookup_elem(&longest, &key);
	if (most && *most < bytes)
		*most = bytes;
	return PASS;
}
