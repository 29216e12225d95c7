/*
 * A guard in front of a host: lets through only TCP and UDP packets that a socket of the host is
 * for, so that scans of its ports get no answer. Counts what it lets through, and what not.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c guard.bpf.c && llvm-strip-19 -g guard.bpf.o
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
enum { PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
enum { STATE_LISTEN = 10 };

/* The network namespace of the device. */
#define CURRENT_NETNS (~0ULL)

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

/* What programs see of a socket. */
struct socket {
	u32 device, family, type, protocol, mark, priority, own_ip4, own_ip6[4], own_port;
	u16 peer_port;
	u32 peer_ip4, peer_ip6[4], state;
};

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static struct socket *(*const sk_lookup_udp)(void *ctx, void *tuple, u32 size, u64 netns,
					     u64 flags) = (void *)85;
static long (*const sk_release)(struct socket *socket) = (void *)86;
static struct socket *(*const skc_lookup_tcp)(void *ctx, void *tuple, u32 size, u64 netns,
					      u64 flags) = (void *)99;

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

struct ports {
	u16 from, to;
};

struct tuple4 {
	u32 from, to;
	struct ports ports;
};

struct tuple6 {
	u32 from[4], to[4];
	struct ports ports;
};

/* What became of packets. */
enum outcome { NO_SOCKET, CONNECTION, LISTENER, UDP_SOCKET, OTHER, OUTCOMES };

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, OUTCOMES);
} outcomes SEC(".maps");

static __attribute__((always_inline)) int done(enum outcome outcome)
{
	u32 key = outcome;
	u64 *count = map_lookup_elem(&outcomes, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	return outcome == NO_SOCKET ? XDP_DROP : XDP_PASS;
}

/* Looks for the socket of a packet between these ends. */
static __attribute__((always_inline)) int find(struct xdp_md *ctx, u8 protocol, void *tuple, u32 size)
{
	enum outcome outcome = UDP_SOCKET;
	struct socket *socket;

	if (protocol == PROTOCOL_UDP) {
		socket = sk_lookup_udp(ctx, tuple, size, CURRENT_NETNS, 0);
		if (!socket)
			return done(NO_SOCKET);
	} else {
		socket = skc_lookup_tcp(ctx, tuple, size, CURRENT_NETNS, 0);
		if (!socket)
			return done(NO_SOCKET);
		outcome = socket->state == STATE_LISTEN ? LISTENER : CONNECTION;
	}
	sk_release(socket);
	return done(outcome);
}

SEC("xdp")
int guard(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *ethernet = data;
	void *network = ethernet + 1;

	if (network > end)
		return done(OTHER);
	if (ethernet->type == __builtin_bswap16(0x0800)) {
		struct ipv4 *ip = network;
		struct ports *ports = (void *)(ip + 1);

		if ((void *)(ports + 1) > end || ip->version != 0x45 ||
		    (ip->protocol != PROTOCOL_TCP && ip->protocol != PROTOCOL_UDP))
			return done(OTHER);
		struct tuple4 tuple = { ip->from, ip->to, *ports };
		return find(ctx, ip->protocol, &tuple, sizeof(tuple));
	}
	if (ethernet->type == __builtin_bswap16(0x86dd)) {
		struct ipv6 *ip = network;
		struct ports *ports = (void *)(ip + 1);

		if ((void *)(ports + 1) > end ||
		    (ip->next != PROTOCOL_TCP && ip->next != PROTOCOL_UDP))
			return done(OTHER);
		struct tuple6 tuple;
		__builtin_memcpy(&tuple.from, &ip->from, sizeof(tuple.from));
		__builtin_memcpy(&tuple.to, &ip->to, sizeof(tuple.to));
		tuple.ports = *ports;
		return find(ctx, ip->next, &tuple, sizeof(tuple));
	}
	return done(OTHER);
}

char LICENSE[] SEC("license") = "GPL";
