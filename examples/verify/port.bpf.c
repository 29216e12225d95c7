/*
 * Drops TCP packets for port 22. Refused: the TCP header comes behind IP options, and only
 * the IP header is compared with the end of the packet.
 *
 * Needs no header. Build:
 *   clang -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c port.bpf.c && llvm-strip -g port.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct ip {
	u8 ihl : 4, version : 4;
	u8 tos;
	u16 length;
	u8 other[5];
	u8 protocol;
	u8 rest[10];
};

struct tcp {
	u16 from;
	u16 to;
};

enum { DROP = 1, PASS = 2, ETHERNET = 14, TCP = 6 };

SEC("xdp")
int port(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *data_end = (void *)(long)ctx->data_end;
	struct ip *ip = data + ETHERNET;
	struct tcp *tcp;

	if ((void *)(ip + 1) > data_end)
		return PASS;
	if (ip->protocol != TCP)
		return PASS;
	tcp = (void *)ip + ip->ihl * 4;
	if (tcp->to == 0x1600)
		return DROP;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
