/*
 * Passes segments of TCP connections that were opened, by a table of states. Bug: the second FIN opens a
 * connection again. No state executes other instructions than another one.
 */
#include "planted.h"

enum state { NONE, ASKED, ANSWERED, OPEN, CLOSING, CLOSED };
enum event { SYN, SYN_ACK, ACK, FIN, OTHER };

struct flow {
	u32 state;
	u32 fins;
};

struct ends {
	u32 addresses;
	u32 ports;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct ends);
	__type(value, struct flow);
} flows SEC(".maps");

static const volatile u8 next[6][5] = {
	[NONE] = { ASKED, NONE, NONE, NONE, NONE },
	[ASKED] = { ASKED, ANSWERED, ASKED, NONE, NONE },
	[ANSWERED] = { NONE, ANSWERED, OPEN, NONE, NONE },
	[OPEN] = { NONE, NONE, OPEN, CLOSING, NONE },
	[CLOSING] = { NONE, NONE, CLOSING, OPEN, NONE },
	[CLOSED] = { ASKED, CLOSED, CLOSED, CLOSED, CLOSED },
};

static const volatile u8 passes[6] = { 0, 1, 1, 1, 1, 0 };

struct tcp {
	struct ports ports;
	u32 seq;
	u32 ack;
	u8 offset;
	u8 flags;
};

SEC("xdp")
int track(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct tcp *tcp = (void *)(ip + 1);
	struct flow none = {}, *flow;
	struct ends ends;
	u32 event = OTHER, state;

	if (!FITS(tcp, end) || ether->type != swap16(IPV4) || ip->ihl != 5 || ip->protocol != TCP)
		return PASS;
	ends.addresses = ip->from ^ ip->to;
	ends.ports = tcp->ports.from ^ tcp->ports.to;
	switch (tcp->flags & 0x17) {
	case 0x02:
		event = SYN;
		break;
	case 0x12:
		event = SYN_ACK;
		break;
	case 0x10:
		event = ACK;
		break;
	case 0x11:
		event = FIN;
		break;
	}
	flow = map_lookup_elem(&flows, &ends);
	if (!flow) {
		map_update_elem(&flows, &ends, &none, 0);
		flow = map_lookup_elem(&flows, &ends);
		if (!flow)
			return DROP;
	}
	state = flow->state;
	if (state > CLOSED)
		return DROP;
	state = next[state][event];
	flow->state = state;
	flow->fins = event == SYN ? 0 : flow->fins + (event == FIN && state != NONE);
	return DROP + passes[state > CLOSED ? 0 : state];
}
