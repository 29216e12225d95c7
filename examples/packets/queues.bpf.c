/*
 * Hands UDP packets to port 4433 to the AF_XDP socket of the queue that received them; the kernel
 * gets all others, and those of queues without a socket.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c queues.bpf.c && llvm-strip-19 -g queues.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_XSKMAP = 17 };
enum { XDP_PASS = 2 };
enum { PROTOCOL_UDP = 17, PORT = 4433 };

static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct ethernet {
	u8 to[6];
	u8 from[6];
	u16 type;
};

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

struct udp {
	u16 from;
	u16 to;
	u16 len;
	u16 check;
};

struct packet {
	struct ethernet ethernet;
	struct ipv4 ip;
	struct udp udp;
} __attribute__((packed));

/* Sockets by the number of their queue. */
struct {
	__uint(type, MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
} sockets SEC(".maps");

SEC("xdp")
int queues(struct xdp_md *ctx)
{
	struct packet *packet = (void *)(u64)ctx->data;

	if ((void *)(packet + 1) > (void *)(u64)ctx->data_end)
		return XDP_PASS;
	if (packet->ethernet.type != __builtin_bswap16(0x0800) || packet->ip.version != 0x45)
		return XDP_PASS;
	if (packet->ip.protocol != PROTOCOL_UDP || packet->udp.to != __builtin_bswap16(PORT))
		return XDP_PASS;
	return redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}
