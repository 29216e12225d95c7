/*
 * An XDP program at the edge of a network: counts TCP segments by destination port, drops those
 * that announce a large segment size in their options, and lowers the time to live of the others.
 *
 * Needs no header. Its object keeps the debug information, so that `beebox run --why` knows its
 * variables by name. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c edge.bpf.c
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_HASH = 1, MAP_TYPE_RINGBUF = 27 };
enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6 };
enum { OPTION_END = 0, OPTION_PAD = 1, OPTION_SEGMENT_SIZE = 2 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static long (*const trace_printk)(const char *format, u32 size, ...) = (void *)6;
static long (*const ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

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
	u16 window;
	u16 checksum;
	u16 urgent;
};

struct counter {
	u64 segments;
	u64 bytes;
};

struct refusal {
	u8 from[4];
	u16 port;
	u16 segment_size;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u16);
	__type(value, struct counter);
} ports SEC(".maps");

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} refusals SEC(".maps");

struct refusal *unused_refusal;
volatile const u16 largest_segment = 1460;

/* The segment size that the options of a segment announce; 0 for none. */
static __attribute__((noinline)) u16 announced(u8 *option, void *end)
{
	for (int at = 0; at < 5; at++) {
		if ((void *)(option + 4) > end)
			return 0;
		if (option[0] == OPTION_SEGMENT_SIZE)
			return option[2] << 8 | option[3];
		if (option[0] == OPTION_END)
			return 0;
		option += option[0] == OPTION_PAD ? 1 : option[1] & 31;
	}
	return 0;
}

static void count(u16 port, u64 bytes)
{
	struct counter first = { .segments = 1, .bytes = bytes };
	struct counter *counter = map_lookup_elem(&ports, &port);

	if (counter) {
		counter->segments++;
		counter->bytes += bytes;
	} else {
		map_update_elem(&ports, &port, &first, 0);
	}
}

SEC("xdp")
int edge(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = start;
	struct ip *ip = (void *)(ether + 1);
	struct tcp *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > end)
		return PASS;
	if (ether->type != __builtin_bswap16(ETHER_IPV4))
		return PASS;
	if (ip->protocol != PROTOCOL_TCP || ip->ihl != 5)
		return PASS;

	u16 port = __builtin_bswap16(tcp->to);
	count(port, end - start);

	u16 size = announced((u8 *)(tcp + 1), end);
	if (size > largest_segment) {
		struct refusal refusal = { .port = port, .segment_size = size };

		__builtin_memcpy(refusal.from, ip->from, 4);
		ringbuf_output(&refusals, &refusal, sizeof(refusal), 0);
		trace_printk("segment size %d refused", 24, size);
		return DROP;
	}
	ip->ttl--;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
