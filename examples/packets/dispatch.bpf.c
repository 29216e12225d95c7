/*
 * An XDP program in three pieces: the first one chooses by protocol which of the others goes
 * on, by tail calls through a program array that the object fills.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c dispatch.bpf.c && llvm-strip-19 -g dispatch.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) typeof(value) *name[]

enum { MAP_TYPE_PROG_ARRAY = 3 };
enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
enum { TCP, UDP, UNUSED, PROTOCOLS };

static long (*const tail_call)(void *ctx, void *programs, u32 index) = (void *)12;

enum action { ABORTED, DROP, PASS };

struct xdp_md {
	u32 data;
	u32 data_end;
};

int tcp(struct xdp_md *ctx);
int udp(struct xdp_md *ctx);

struct {
	__uint(type, MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PROTOCOLS);
	__uint(key_size, sizeof(u32));
	__array(values, int(void *));
} protocols SEC(".maps") = {
	.values = {
		[TCP] = (void *)&tcp,
		[UDP] = (void *)&udp,
	},
};

u64 tcp_bytes, udp_packets, others;

SEC("xdp")
int tcp(struct xdp_md *ctx)
{
	tcp_bytes += ctx->data_end - ctx->data;
	return PASS;
}

SEC("xdp")
int udp(struct xdp_md *ctx)
{
	udp_packets++;
	return DROP;
}

SEC("xdp")
int dispatch(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u16 *type = start + 12;
	u8 *protocol = start + 23;

	if (start + 34 <= end && *type == __builtin_bswap16(ETHER_IPV4)) {
		u32 index = *protocol == PROTOCOL_TCP ? TCP :
			    *protocol == PROTOCOL_UDP ? UDP : UNUSED;

		tail_call(ctx, &protocols, index);
	}
	/* No program is in the slot, or it is no IPv4 packet. */
	others++;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
