/*
 * Drops TCP to port 23 (telnet) and passes everything else: the program of docs/fuzz.md. It has a bug, which
 * -DEDIT corrects.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c telnet.bpf.c && llvm-strip-19 -g telnet.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))

enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6, TELNET = 23 };
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
	u32 from;
	u32 to;
};

struct tcp {
	u16 from;
	u16 to;
};

SEC("xdp")
int telnet(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ether *ether = start;
	struct ip *ip = (void *)(ether + 1);
	struct tcp *tcp;

	if ((void *)(ip + 1) > end || ether->type != __builtin_bswap16(ETHER_IPV4))
		return PASS;
	/* Later fragments have no ports. */
	if (ip->protocol != PROTOCOL_TCP || ip->fragment & __builtin_bswap16(0x1fff))
		return PASS;
#ifdef EDIT
	tcp = (void *)ip + ip->ihl * 4;
#else
	tcp = (void *)(ip + 1);
#endif
	if ((void *)(tcp + 1) > end)
		return PASS;
	return tcp->to == __builtin_bswap16(TELNET) ? DROP : PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
