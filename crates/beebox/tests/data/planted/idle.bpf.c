/*
 * Passes UDP of senders that sent a DNS query within the last minute. Bug: the age is kept in 32 bits of
 * nanoseconds, so that it is never above a minute.
 */
#include "planted.h"

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} queried SEC(".maps");

SEC("xdp")
int idle(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct ports *ports = (void *)(ip + 1);
	u64 now, *last;
	u32 age;

	if (!FITS(ports, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != UDP)
		return PASS;
	now = ktime_get_ns();
	if (ports->to == swap16(53)) {
		map_update_elem(&queried, &ip->from, &now, 0);
		return PASS;
	}
	last = map_lookup_elem(&queried, &ip->from);
	if (!last)
		return DROP;
	age = now - *last;
	return age / 1000000000 > 60 ? DROP : PASS;
}
