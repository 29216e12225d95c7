/*
 * A router: looks up the route of each IPv4 and IPv6 packet, writes the hardware addresses of the
 * next hop, and sends the packet through its interface. What it does not forward goes to the
 * host, but for packets that routes drop.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c router.bpf.c && llvm-strip-19 -g router.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_ARRAY = 2 };
enum { XDP_DROP = 1, XDP_PASS };
enum { AF_INET = 2, AF_INET6 = 10 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*const fib_lookup)(void *ctx, void *params, int size, u32 flags) = (void *)69;

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct ethernet {
	u8 to[6];
	u8 from[6];
	u16 type;
} __attribute__((packed));

struct ipv4 {
	u8 version;
	u8 tos;
	u16 len;
	u32 id;
	u8 ttl;
	u8 protocol;
	u16 check;
	u32 from;
	u32 to;
};

struct ipv6 {
	u32 flow;
	u16 len;
	u8 next;
	u8 hops;
	u32 from[4];
	u32 to[4];
};

struct lookup {
	u8 family;
	u8 protocol;
	u16 from_port, to_port;
	u16 len;
	u32 ifindex;
	u32 flow;
	u32 from[4];
	u32 to[4];
	u16 vlan_protocol, vlan_tci;
	u8 from_mac[6];
	u8 to_mac[6];
};

/* Packets by the result of the lookup: 0 forwarded, 7 without a neighbour, and so on. */
struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} results SEC(".maps");

static u16 swap(u16 value)
{
	return value << 8 | value >> 8;
}

static void copy(u8 *to, const u8 *from)
{
	for (int i = 0; i < 6; i++)
		to[i] = from[i];
}

SEC("xdp")
int route(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct ethernet *ethernet = data;
	struct ipv4 *ipv4 = data + sizeof(*ethernet);
	struct ipv6 *ipv6 = data + sizeof(*ethernet);
	struct lookup lookup = {};

	if ((void *)ipv4 + sizeof(*ipv4) > end)
		return XDP_PASS;
	if (ethernet->type == swap(0x0800)) {
		if (ipv4->ttl <= 1)
			return XDP_PASS;
		lookup.family = AF_INET;
		lookup.protocol = ipv4->protocol;
		lookup.len = swap(ipv4->len);
		lookup.flow = ipv4->tos;
		lookup.from[0] = ipv4->from;
		lookup.to[0] = ipv4->to;
	} else if (ethernet->type == swap(0x86dd)) {
		if ((void *)ipv6 + sizeof(*ipv6) > end || ipv6->hops <= 1)
			return XDP_PASS;
		lookup.family = AF_INET6;
		lookup.protocol = ipv6->next;
		lookup.len = swap(ipv6->len) + sizeof(*ipv6);
		lookup.flow = ipv6->flow & 0xffffff0f;
		for (int i = 0; i < 4; i++) {
			lookup.from[i] = ipv6->from[i];
			lookup.to[i] = ipv6->to[i];
		}
	} else {
		return XDP_PASS;
	}
	lookup.ifindex = ctx->ingress_ifindex;

	long result = fib_lookup(ctx, &lookup, sizeof(lookup), 0);
	u32 key = result < 0 ? 15 : result & 15;
	u64 *count = map_lookup_elem(&results, &key);
	if (count)
		*count += 1;
	/* Blackhole, unreachable, prohibited. */
	if (result >= 1 && result <= 3)
		return XDP_DROP;
	if (result != 0)
		return XDP_PASS;

	if (lookup.family == AF_INET && ethernet->type == swap(0x0800)) {
		u32 check = ipv4->check + 1;
		ipv4->check = check + (check >= 0xffff);
		ipv4->ttl -= 1;
	} else if ((void *)ipv6 + sizeof(*ipv6) <= end) {
		ipv6->hops -= 1;
	}
	copy(ethernet->to, lookup.to_mac);
	copy(ethernet->from, lookup.from_mac);
	return redirect(lookup.ifindex, 0);
}

char LICENSE[] SEC("license") = "GPL";
