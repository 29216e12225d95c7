/*
 * A netfilter program that records what the objects hold to which its context points.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c hook.bpf.c && llvm-strip-19 -g hook.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

u64 trace;

static __attribute__((always_inline)) void note(u64 what)
{
	trace = trace * 31 + what;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net_device {
	int ifindex;
	u32 mtu;
};

struct nf_hook_state {
	u8 hook, pf;
	struct net_device *in, *out;
};

struct sk_buff {
	struct net_device *dev;
	u32 len, tail, end, truesize;
	u16 protocol, transport_header, network_header, mac_header;
	unsigned char *head, *data;
};
#pragma clang attribute pop

struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

/* What the objects hold that the context points to. */
SEC("netfilter")
int hook_objects(struct bpf_nf_ctx *ctx)
{
	const struct nf_hook_state *state = ctx->state;
	struct sk_buff *skb = ctx->skb;
	u64 header[2] = {};

	note(state->hook);
	note(state->pf);
	note(state->in != 0);
	if (state->out) {
		note(state->out->ifindex);
		note(state->out->mtu);
	}
	if (skb->dev)
		note(skb->dev->ifindex);
	note(skb->len);
	note(skb->tail);
	note(skb->end);
	note(skb->truesize);
	note(skb->protocol);
	note(skb->transport_header);
	note(skb->network_header);
	note(skb->mac_header);
	note(skb->data - skb->head);
	note(probe_read_kernel(header, sizeof(header), skb->head + skb->network_header));
	note(header[0]);
	note(header[1]);
	note(probe_read_kernel(header, sizeof(header), skb->data));
	note(header[1]);
	return skb->len & 1;
}

/* Follows pointers that may be null, without a check. */
SEC("netfilter")
int null_objects(struct bpf_nf_ctx *ctx)
{
	const struct nf_hook_state *state = ctx->state;

	note(state->in->ifindex);
	note(state->out->mtu);
	note(ctx->skb->dev->ifindex);
	return ctx->skb->dev->ifindex == 1;
}

const char LICENSE[] SEC("license") = "GPL";
