/* W5: header parsing: Ethernet, VLAN tags, IPv4 with options, IPv6 with
 * extension headers, TCP and UDP; a hash of the flow's addresses and ports. On
 * every frame of a batch. Each header is tested against the end of the packet
 * before it is read. */
#include "workload.h"

#define FRAMES 24
#define MOST_TAGS 2
#define MOST_EXTENSIONS 2

#define TYPE_IPV4 0x0800
#define TYPE_VLAN 0x8100
#define TYPE_QINQ 0x88a8
#define TYPE_IPV6 0x86dd

#define HOP_BY_HOP 0
#define TCP 6
#define UDP 17
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION 60

/* The numbers of extension headers, a bit for each. */
#define EXTENSIONS                                                             \
	(1ull << HOP_BY_HOP | 1ull << ROUTING | 1ull << FRAGMENT |             \
	 1ull << DESTINATION)

struct flow {
	u32 source;
	u32 destination;
	u32 ports;
	u32 kind;
};

inlined u32 hash(const struct flow *flow)
{
	u32 h = flow->source * 0x85ebca6b;

	h ^= h >> 13;
	h = (h + flow->destination) * 0xc2b2ae35;
	h ^= h >> 16;
	h = (h + flow->ports) * 0x27d4eb2f;
	h ^= h >> 15;
	return h + flow->kind;
}

inlined u32 with_ports(struct flow *flow, const u8 *at, const u8 *end, u8 protocol)
{
	flow->kind |= protocol;
	if (protocol == TCP) {
		if (at + 20 > end)
			return 1;
		flow->ports = word(at);
		flow->kind |= (u32)at[13] << 16;
	} else if (protocol == UDP) {
		if (at + 8 > end)
			return 2;
		flow->ports = word(at);
	}
	return hash(flow);
}

inlined u32 ipv4(const u8 *at, const u8 *end)
{
	struct flow flow = { .kind = TYPE_IPV4 };

	if (at + 20 > end)
		return 3;
	u32 length = (at[0] & 15) * 4;
	if (at[0] >> 4 != 4 || length < 20)
		return 4;
	flow.source = word(at + 12);
	flow.destination = word(at + 16);
	u16 fragment = half(at + 6);
	u8 protocol = at[9];
	if (fragment & 0x1fff) {
		flow.kind |= 0x10000;
		return hash(&flow);
	}
	return with_ports(&flow, at + length, end, protocol);
}

inlined u32 ipv6(const u8 *at, const u8 *end)
{
	struct flow flow = { .kind = TYPE_IPV6 };

	if (at + 40 > end)
		return 5;
	flow.source = word(at + 8) ^ word(at + 12) ^ word(at + 16) ^ word(at + 20);
	flow.destination = word(at + 24) ^ word(at + 28) ^ word(at + 32) ^ word(at + 36);
	u8 next = at[6];
	at += 40;
	for (u32 i = 0; i < MOST_EXTENSIONS; i++) {
		if (next > DESTINATION || !(EXTENSIONS >> next & 1))
			break;
		if (at + 8 > end)
			return 6;
		u32 length = next == FRAGMENT ? 8 : (at[1] + 1) * 8;
		next = at[0];
		at += length;
	}
	return with_ports(&flow, at, end, next);
}

inlined u32 parse(const u8 *frame, const u8 *end)
{
	if (frame + 14 > end)
		return 7;
	u16 type = half(frame + 12);
	const u8 *at = frame + 14;
	for (u32 i = 0; i < MOST_TAGS; i++) {
		if (type != TYPE_VLAN && type != TYPE_QINQ)
			break;
		if (at + 4 > end)
			return 8;
		type = half(at + 2);
		at += 4;
	}
	if (type == TYPE_IPV4)
		return ipv4(at, end);
	if (type == TYPE_IPV6)
		return ipv6(at, end);
	return type;
}

u32 entry(struct context *context)
{
	const u8 *frame = data_of(context), *end = end_of(context);
	u32 all = 0;

	for (u32 i = 0; i < FRAMES; i++) {
		/* One pointer, or the verifier does not know it again. */
		opaque(frame);
		if (frame + SLOT > end)
			break;
		all = all * 31 + parse(frame, end);
		frame += SLOT;
	}
	return all;
}
