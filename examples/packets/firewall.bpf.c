/*
 * An XDP firewall: drops IPv4 packets from blocked networks, and TCP segments that open a
 * connection to a port that is not open.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c firewall.bpf.c && llvm-strip-19 -g firewall.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_HASH = 1, MAP_TYPE_PERCPU_ARRAY = 6, MAP_TYPE_LRU_HASH = 9, MAP_TYPE_LPM_TRIE = 11 };
enum { NO_PREALLOC = 1 };
enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6, TCP_SYN = 2, TCP_ACK = 16 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;

enum action { ABORTED, DROP, PASS };

struct xdp_md {
	u32 data;
	u32 data_end;
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

struct network {
	u32 prefix_length;
	u8 address[4];
};

struct address {
	u8 bytes[4];
};

struct rule {
	char name[16];
	u64 hits;
};

struct sender {
	u64 packets;
	u64 bytes;
	enum action last;
};

struct {
	__uint(type, MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, NO_PREALLOC);
	__type(key, struct network);
	__type(value, struct rule);
} blocked SEC(".maps");

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u16);
	__type(value, u64);
} open_ports SEC(".maps");

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct address);
	__type(value, struct sender);
} senders SEC(".maps");

struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, u64);
} actions SEC(".maps");

/* Connections that were refused, and whether any may be. */
u64 refused;
volatile const _Bool checks_ports = 1;

static enum action judge(struct ip *ip, void *end)
{
	struct network network = { .prefix_length = 32 };
	struct rule *rule;
	struct tcp *tcp;
	u64 *open;
	u16 port;

	__builtin_memcpy(network.address, ip->from, 4);
	rule = map_lookup_elem(&blocked, &network);
	if (rule) {
		__sync_fetch_and_add(&rule->hits, 1);
		return DROP;
	}
	if (!checks_ports || ip->protocol != PROTOCOL_TCP || ip->fragment & 0xff1f)
		return PASS;
	tcp = (void *)ip + ip->ihl * 4;
	if ((void *)(tcp + 1) > end)
		return PASS;
	if ((tcp->flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return PASS;
	port = __builtin_bswap16(tcp->to);
	open = map_lookup_elem(&open_ports, &port);
	if (open) {
		(*open)++;
		return PASS;
	}
	refused++;
	return DROP;
}

SEC("xdp")
int firewall(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = start;
	struct ip *ip = (void *)(ether + 1);
	enum action action = PASS;
	u64 *count;
	u32 index;

	if ((void *)(ip + 1) <= end && ether->type == __builtin_bswap16(ETHER_IPV4)) {
		struct sender *sender, first = { 0 };

		action = judge(ip, end);
		sender = map_lookup_elem(&senders, ip->from);
		if (sender) {
			sender->packets++;
			sender->bytes += end - start;
			sender->last = action;
		} else {
			first.packets = 1;
			first.bytes = end - start;
			first.last = action;
			map_update_elem(&senders, ip->from, &first, 0);
		}
	}
	index = action;
	count = map_lookup_elem(&actions, &index);
	if (count)
		(*count)++;
	return action;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
