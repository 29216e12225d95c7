/*
 * A netfilter hook that drops TCP to port 23: it reads packets from their network header on.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c hook.bpf.c && llvm-strip-19 -g hook.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))

struct bpf_dynptr {
	u64 opaque[2];
};

struct __sk_buff {
	u32 len;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct nf_hook_state;

struct sk_buff {
	u32 len;
};

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

#pragma clang attribute pop

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *ptr) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, u32 offset, void *buffer,
			      u32 size) __ksym;

SEC("netfilter")
int no_telnet(struct bpf_nf_ctx *ctx)
{
	struct __sk_buff *skb = (void *)ctx->skb;
	struct bpf_dynptr ptr;
	u8 buffer[24], *ip;

	if (bpf_dynptr_from_skb(skb, 0, &ptr))
		return 0;
	ip = bpf_dynptr_slice(&ptr, 0, buffer, sizeof(buffer));
	if (!ip || ip[0] != 0x45 || ip[9] != 6)
		return 1;
	return ip[22] == 0 && ip[23] == 23 ? 0 : 1;
}

char LICENSE[] SEC("license") = "GPL";
