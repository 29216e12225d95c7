/*
 * A flow dissector in pieces: a program for each protocol, which goes on with the next one by
 * a tail call. Ethernet types: IPv4, IPv6, VLAN (two tags at most), MPLS; protocols: extension
 * headers and fragments of IPv6, GRE, IP in IP, TCP, UDP, ICMP.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c dissector.bpf.c && llvm-strip-19 -g dissector.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int (*name)[value]
#define htons(x) __builtin_bswap16(x)
#define htonl(x) __builtin_bswap32(x)

enum { PROG_ARRAY = 3 };
enum { OK = 0, DROP = 2 };

enum {
	ETH_IPV4 = 0x0800,
	ETH_VLAN = 0x8100,
	ETH_IPV6 = 0x86dd,
	ETH_MPLS = 0x8847,
	ETH_MPLS_MULTICAST = 0x8848,
	ETH_QINQ = 0x88a8,
	ETH_BRIDGED = 0x6558,
};

enum {
	IP_HOP_BY_HOP = 0,
	IP_ICMP = 1,
	IP_IPIP = 4,
	IP_TCP = 6,
	IP_UDP = 17,
	IP_IPV6 = 41,
	IP_ROUTING = 43,
	IP_FRAGMENT = 44,
	IP_GRE = 47,
	IP_ICMPV6 = 58,
	IP_DESTINATION = 60,
	IP_UDPLITE = 136,
};

/* Flags of the caller. */
enum { FIRST_FRAGMENT = 1, STOP_AT_LABEL = 2, STOP_AT_ENCAP = 4 };

struct bpf_flow_keys {
	u16 nhoff, thoff, addr_proto;
	u8 is_frag, is_first_frag, is_encap, ip_proto;
	u16 n_proto, sport, dport;
	union {
		struct {
			u32 ipv4_src, ipv4_dst;
		};
		struct {
			u32 ipv6_src[4], ipv6_dst[4];
		};
	};
	u32 flags, flow_label;
};

struct __sk_buff {
	u32 before[19];
	u32 data, data_end;
	u32 between[15];
	struct bpf_flow_keys *flow_keys;
};

_Static_assert(__builtin_offsetof(struct __sk_buff, flow_keys) == 144, "as in linux/bpf.h");

enum { SLOT_IPV4, SLOT_IPV6, SLOT_OPTIONS, SLOT_FRAGMENT, SLOT_VLAN, SLOT_MPLS, SLOTS };

int ipv4(struct __sk_buff *skb);
int ipv6(struct __sk_buff *skb);
int options(struct __sk_buff *skb);
int fragment(struct __sk_buff *skb);
int vlan(struct __sk_buff *skb);
int mpls(struct __sk_buff *skb);

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, SLOTS);
	__uint(key_size, 4);
	__uint(value_size, 4);
	int (*values[])();
} parsers SEC(".maps") = {
	.values = {
		[SLOT_IPV4] = &ipv4,
		[SLOT_IPV6] = &ipv6,
		[SLOT_OPTIONS] = &options,
		[SLOT_FRAGMENT] = &fragment,
		[SLOT_VLAN] = &vlan,
		[SLOT_MPLS] = &mpls,
	},
};

static long (*const tail_call)(void *ctx, void *map, u32 index) = (void *)12;

/* So many bytes at the transport offset; null if the packet is shorter. */
static __always_inline void *header(struct __sk_buff *skb, u32 size)
{
	u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	u32 offset = skb->flow_keys->thoff;

	if (offset > 4096 || data + offset + size > end)
		return 0;
	return data + offset;
}

static __always_inline int by_ethertype(struct __sk_buff *skb, u16 type)
{
	skb->flow_keys->n_proto = type;
	switch (htons(type)) {
	case ETH_IPV4:
		tail_call(skb, &parsers, SLOT_IPV4);
		break;
	case ETH_IPV6:
		tail_call(skb, &parsers, SLOT_IPV6);
		break;
	case ETH_VLAN:
	case ETH_QINQ:
		tail_call(skb, &parsers, SLOT_VLAN);
		break;
	case ETH_MPLS:
	case ETH_MPLS_MULTICAST:
		tail_call(skb, &parsers, SLOT_MPLS);
		break;
	}
	return DROP;
}

struct gre {
	u16 flags, protocol;
};

static __always_inline int gre(struct __sk_buff *skb)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	struct gre *gre = header(skb, sizeof(*gre));
	u32 size = sizeof(*gre);
	u16 protocol;

	if (!gre)
		return DROP;
	/* Another version, or a route inside. */
	if (gre->flags & htons(0x4007))
		return OK;
	if (gre->flags & htons(0x8000))
		size += 4;
	if (gre->flags & htons(0x2000))
		size += 4;
	if (gre->flags & htons(0x1000))
		size += 4;
	keys->is_encap = 1;
	if (keys->flags & STOP_AT_ENCAP)
		return OK;
	protocol = gre->protocol;
	keys->thoff += size;
	if (protocol == htons(ETH_BRIDGED)) {
		u16 *ethernet = header(skb, 14);

		if (!ethernet)
			return DROP;
		protocol = ethernet[6];
		keys->thoff += 14;
	}
	return by_ethertype(skb, protocol);
}

static __always_inline int ports(struct __sk_buff *skb, u32 least)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	u16 *ports = header(skb, least);

	if (!ports)
		return DROP;
	keys->sport = ports[0];
	keys->dport = ports[1];
	return OK;
}

static __always_inline int encapsulated(struct __sk_buff *skb, u16 type)
{
	skb->flow_keys->is_encap = 1;
	if (skb->flow_keys->flags & STOP_AT_ENCAP)
		return OK;
	return by_ethertype(skb, htons(type));
}

static __always_inline int by_protocol(struct __sk_buff *skb, u8 protocol)
{
	switch (protocol) {
	case IP_TCP: {
		u8 *tcp = header(skb, 20);

		if (!tcp || tcp[12] >> 4 < 5 || !header(skb, (tcp[12] >> 4) * 4))
			return DROP;
		return ports(skb, 20);
	}
	case IP_UDP:
	case IP_UDPLITE:
		return ports(skb, 8);
	case IP_ICMP:
	case IP_ICMPV6:
		return header(skb, 8) ? OK : DROP;
	case IP_IPIP:
		return encapsulated(skb, ETH_IPV4);
	case IP_IPV6:
		return encapsulated(skb, ETH_IPV6);
	case IP_GRE:
		return gre(skb);
	}
	return DROP;
}

static __always_inline int by_next_header(struct __sk_buff *skb, u8 protocol)
{
	skb->flow_keys->ip_proto = protocol;
	switch (protocol) {
	case IP_HOP_BY_HOP:
	case IP_ROUTING:
	case IP_DESTINATION:
		tail_call(skb, &parsers, SLOT_OPTIONS);
		return DROP;
	case IP_FRAGMENT:
		tail_call(skb, &parsers, SLOT_FRAGMENT);
		return DROP;
	}
	return by_protocol(skb, protocol);
}

SEC("flow_dissector")
int dissect(struct __sk_buff *skb)
{
	return by_ethertype(skb, skb->flow_keys->n_proto);
}

/* What a run costs without anything in it. */
SEC("flow_dissector")
int nothing(struct __sk_buff *skb)
{
	return OK;
}

struct ipv4 {
	u8 version_and_length, tos;
	u16 length, id, fragment;
	u8 ttl, protocol;
	u16 checksum;
	u32 source, destination;
};

SEC("flow_dissector")
int ipv4(struct __sk_buff *skb)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	struct ipv4 *ip = header(skb, sizeof(*ip));
	u32 size;

	if (!ip)
		return DROP;
	size = (ip->version_and_length & 15) * 4;
	if (size < sizeof(*ip))
		return DROP;
	keys->addr_proto = ETH_IPV4;
	keys->ipv4_src = ip->source;
	keys->ipv4_dst = ip->destination;
	keys->ip_proto = ip->protocol;
	keys->thoff += size;
	if (ip->fragment & htons(0x3fff)) {
		keys->is_frag = 1;
		if (ip->fragment & htons(0x1fff))
			return OK;
		keys->is_first_frag = 1;
		if (!(keys->flags & FIRST_FRAGMENT))
			return OK;
	}
	return by_protocol(skb, ip->protocol);
}

struct ipv6 {
	u32 version_and_label;
	u16 length;
	u8 next, hops;
	u32 source[4], destination[4];
};

SEC("flow_dissector")
int ipv6(struct __sk_buff *skb)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	struct ipv6 *ip = header(skb, sizeof(*ip));

	if (!ip)
		return DROP;
	keys->addr_proto = ETH_IPV6;
	__builtin_memcpy(keys->ipv6_src, ip->source, 16);
	__builtin_memcpy(keys->ipv6_dst, ip->destination, 16);
	keys->thoff += sizeof(*ip);
	keys->flow_label = ip->version_and_label & htonl(0xfffff);
	if (keys->flow_label && keys->flags & STOP_AT_LABEL) {
		keys->ip_proto = ip->next;
		return OK;
	}
	return by_next_header(skb, ip->next);
}

/* An extension header with a length: hop by hop, destination, routing. */
SEC("flow_dissector")
int options(struct __sk_buff *skb)
{
	u8 *extension = header(skb, 8);
	u8 next;

	if (!extension)
		return DROP;
	next = extension[0];
	skb->flow_keys->thoff += (1 + extension[1]) * 8;
	return by_next_header(skb, next);
}

SEC("flow_dissector")
int fragment(struct __sk_buff *skb)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	u8 *extension = header(skb, 8);
	u8 next;

	if (!extension)
		return DROP;
	next = extension[0];
	keys->thoff += 8;
	keys->is_frag = 1;
	keys->ip_proto = next;
	if (*(u16 *)(extension + 2) & htons(0xfff8))
		return OK;
	keys->is_first_frag = 1;
	if (!(keys->flags & FIRST_FRAGMENT))
		return OK;
	return by_next_header(skb, next);
}

struct tag {
	u16 tci, type;
};

SEC("flow_dissector")
int vlan(struct __sk_buff *skb)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	struct tag *tag = header(skb, sizeof(*tag));
	u16 type;

	if (!tag)
		return DROP;
	type = tag->type;
	keys->nhoff += sizeof(*tag);
	keys->thoff += sizeof(*tag);
	if (keys->n_proto == htons(ETH_QINQ)) {
		/* A second tag belongs to the first one. */
		if (type != htons(ETH_VLAN))
			return DROP;
		tag = header(skb, sizeof(*tag));
		if (!tag)
			return DROP;
		type = tag->type;
		keys->nhoff += sizeof(*tag);
		keys->thoff += sizeof(*tag);
	}
	if (type == htons(ETH_VLAN) || type == htons(ETH_QINQ))
		return DROP;
	return by_ethertype(skb, type);
}

SEC("flow_dissector")
int mpls(struct __sk_buff *skb)
{
	return header(skb, 4) ? OK : DROP;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
