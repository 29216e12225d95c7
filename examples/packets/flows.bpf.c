/*
 * A flow monitor: counts packets and bytes of each TCP and UDP flow over IPv4, and writes a
 * record into a ring buffer when a flow begins and when a TCP flow ends.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c flows.bpf.c && llvm-strip-19 -g flows.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_LRU_HASH = 9, MAP_TYPE_RINGBUF = 27 };
enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4 };
enum { TC_ACT_UNSPEC = -1 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static void *(*const ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *record, u64 flags) = (void *)132;

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid;
	u32 data, data_end;
};

struct ether {
	u8 to[6];
	u8 from[6];
	u16 type;
};

struct ip {
	u8 ihl : 4, version : 4;
	u8 tos;
	u16 length;
	u16 id;
	u16 fragment;
	u8 ttl;
	u8 protocol;
	u16 checksum;
	u8 from[4];
	u8 to[4];
};

struct tcp {
	u16 from;
	u16 to;
	u32 seq;
	u32 ack;
	u8 offset;
	u8 flags;
};

struct flow {
	u8 from[4];
	u8 to[4];
	u16 from_port;
	u16 to_port;
	u32 protocol;
};

struct traffic {
	u64 packets;
	u64 bytes;
	u32 tcp_flags;
	u32 unused;
};

enum event_kind { FLOW_BEGINS, FLOW_ENDS };

struct event {
	enum event_kind kind;
	u32 tcp_flags;
	struct flow flow;
	u64 packets;
	u64 bytes;
	u64 time;
};

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct flow);
	__type(value, struct traffic);
} flows SEC(".maps");

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

/* The types of the ring buffer's records, for those that print them. */
struct event *unused_event __attribute__((unused));

/* Records for which the ring buffer had no room, and packets that are no flow's. */
u64 dropped_records;
u64 others;

static void report(enum event_kind kind, struct flow *flow, struct traffic *traffic)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		dropped_records++;
		return;
	}
	event->kind = kind;
	event->tcp_flags = traffic->tcp_flags;
	event->flow = *flow;
	event->packets = traffic->packets;
	event->bytes = traffic->bytes;
	event->time = ktime_get_ns();
	ringbuf_submit(event, 0);
}

/* Ports and TCP flags of a packet; false if it has none. */
static _Bool read_ports(struct ip *ip, void *end, struct flow *flow, u32 *tcp_flags)
{
	struct tcp *tcp = (void *)ip + ip->ihl * 4;

	if (ip->fragment & 0xff1f)
		return 0;
	if (ip->protocol == PROTOCOL_TCP) {
		if ((void *)(tcp + 1) > end)
			return 0;
		*tcp_flags = tcp->flags;
	} else if (ip->protocol != PROTOCOL_UDP || (void *)tcp + 8 > end) {
		return 0;
	}
	flow->from_port = __builtin_bswap16(tcp->from);
	flow->to_port = __builtin_bswap16(tcp->to);
	return 1;
}

SEC("tc")
int monitor(struct __sk_buff *skb)
{
	void *end = (void *)(long)skb->data_end;
	struct ether *ether = (void *)(long)skb->data;
	struct ip *ip = (void *)(ether + 1);
	struct traffic *traffic, first = { 0 };
	struct flow flow = { 0 };
	u32 tcp_flags = 0;

	if ((void *)(ip + 1) > end || ether->type != __builtin_bswap16(ETHER_IPV4) ||
	    !read_ports(ip, end, &flow, &tcp_flags)) {
		others++;
		return TC_ACT_UNSPEC;
	}
	__builtin_memcpy(flow.from, ip->from, 4);
	__builtin_memcpy(flow.to, ip->to, 4);
	flow.protocol = ip->protocol;
	traffic = map_lookup_elem(&flows, &flow);
	if (!traffic) {
		first.packets = 1;
		first.bytes = skb->len;
		first.tcp_flags = tcp_flags;
		map_update_elem(&flows, &flow, &first, 0);
		report(FLOW_BEGINS, &flow, &first);
		return TC_ACT_UNSPEC;
	}
	traffic->packets++;
	traffic->bytes += skb->len;
	traffic->tcp_flags |= tcp_flags;
	if (tcp_flags & (TCP_FIN | TCP_RST))
		report(FLOW_ENDS, &flow, traffic);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
