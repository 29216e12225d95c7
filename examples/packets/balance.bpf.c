/*
 * An L4 load balancer: passes TCP and UDP packets for a service to one of its backends, in
 * the manner of direct server return: only the Ethernet addresses change. A flow keeps its
 * backend; new flows get theirs by rendezvous hashing, so that a backend that comes or goes
 * moves only the flows that are its own.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c balance.bpf.c && llvm-strip-19 -g balance.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_HASH = 1, MAP_TYPE_ARRAY = 2, MAP_TYPE_LRU_HASH = 9 };
enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
enum { BACKENDS = 16 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;

enum action { ABORTED, DROP, PASS, TX };

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct ether {
	u8 to[6];
	u8 from[6];
	u16 type;
};

struct address {
	u8 bytes[4];
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
	struct address from;
	struct address to;
};

struct ports {
	u16 from;
	u16 to;
};

struct service {
	struct address address;
	u16 port;
	u8 protocol;
	u8 unused;
};

struct flow {
	struct address from;
	struct service service;
	u32 port;
} __attribute__((aligned(8)));

/* A backend without an id takes no packets. */
struct backend {
	u32 id;
	u8 mac[6];
	u8 unused[6];
	u64 packets;
	u64 flows;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct service);
	__type(value, u64);
} services SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, BACKENDS);
	__type(key, u32);
	__type(value, struct backend);
} backends SEC(".maps");

/* The backend of each flow, as index and id. */
struct choice {
	u32 index;
	u32 id;
};

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow);
	__type(value, struct choice);
} flows SEC(".maps");

/* Packets for a service that has no backend. */
u64 lost;

/* Mixes 64 bits, each of which changes half of the result's. */
static u64 mix(u64 bits)
{
	bits ^= bits >> 32;
	bits *= 0x9e3779b97f4a7c15;
	bits ^= bits >> 29;
	bits *= 0xbf58476d1ce4e5b9;
	return bits ^ bits >> 32;
}

/* The backend whose hash with the flow is the greatest. */
static struct backend *choose(struct flow *flow, struct choice *choice)
{
	u64 *words = (u64 *)flow, hash = mix(mix(words[0]) ^ words[1]);
	struct backend *best = 0;
	u64 greatest = 0;
	u32 index;

	for (index = 0; index < BACKENDS; index++) {
		u32 key = index;
		struct backend *backend = map_lookup_elem(&backends, &key);
		u64 weight;

		if (!backend || !backend->id)
			continue;
		weight = mix(hash ^ backend->id);
		if (best && weight <= greatest)
			continue;
		greatest = weight;
		best = backend;
		choice->index = index;
		choice->id = backend->id;
	}
	return best;
}

SEC("xdp")
int balance(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = start;
	struct ip *ip = (void *)(ether + 1);
	struct ports *ports = (void *)(ip + 1);
	struct choice choice = { 0 }, *chosen;
	struct backend *backend = 0;
	struct flow flow = { 0 };
	u64 *packets;

	if ((void *)(ports + 1) > end || ether->type != __builtin_bswap16(ETHER_IPV4))
		return PASS;
	if (ip->ihl != 5 || ip->fragment & 0xff3f)
		return PASS;
	if (ip->protocol != PROTOCOL_TCP && ip->protocol != PROTOCOL_UDP)
		return PASS;
	flow.from = ip->from;
	flow.port = __builtin_bswap16(ports->from);
	flow.service.address = ip->to;
	flow.service.port = __builtin_bswap16(ports->to);
	flow.service.protocol = ip->protocol;
	packets = map_lookup_elem(&services, &flow.service);
	if (!packets)
		return PASS;
	__sync_fetch_and_add(packets, 1);

	chosen = map_lookup_elem(&flows, &flow);
	if (chosen) {
		backend = map_lookup_elem(&backends, &chosen->index);
		if (backend && backend->id != chosen->id)
			backend = 0;
	}
	if (!backend) {
		backend = choose(&flow, &choice);
		if (!backend) {
			lost++;
			return DROP;
		}
		map_update_elem(&flows, &flow, &choice, 0);
		__sync_fetch_and_add(&backend->flows, 1);
	}
	__sync_fetch_and_add(&backend->packets, 1);
	__builtin_memcpy(ether->from, ether->to, 6);
	__builtin_memcpy(ether->to, backend->mac, 6);
	return TX;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
