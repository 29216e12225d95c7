/* Programs that call kernel functions of modules: fou and nf_flow_table.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c modules.bpf.c && llvm-strip-19 -g modules.bpf.o
 */
#include "attach.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct __sk_buff {
	u32 len;
};
struct bpf_fou_encap {
	unsigned short sport;
	unsigned short dport;
};
struct bpf_fib_lookup {
	u8 family;
	u8 bytes[63];
};
struct bpf_flowtable_opts {
	s32 error;
};
#pragma clang attribute pop
struct flow_offload_tuple_rhash {
	u64 node;
	u8 tuple[80];
};

int bpf_skb_get_fou_encap(struct __sk_buff *skb, struct bpf_fou_encap *encap) __ksym;
int bpf_skb_set_fou_encap(struct __sk_buff *skb, struct bpf_fou_encap *encap, int type) __ksym;
struct flow_offload_tuple_rhash *bpf_xdp_flow_lookup(struct xdp_md *xdp, struct bpf_fib_lookup *tuple,
						     struct bpf_flowtable_opts *opts, u32 size) __ksym;

SEC("tc") int sets_ports(struct __sk_buff *skb)
{
	struct bpf_fou_encap encap = {};

	bpf_skb_get_fou_encap(skb, &encap);
	encap.dport += 1;
	return bpf_skb_set_fou_encap(skb, &encap, 0);
}

SEC("tc") int sets_nothing(struct __sk_buff *skb)
{
	return bpf_skb_set_fou_encap(skb, 0, 0);
}

SEC("tc") int sets_context(struct __sk_buff *skb)
{
	return bpf_skb_set_fou_encap(skb, (void *)skb, 0);
}

SEC("tc") int sets_half(struct __sk_buff *skb)
{
	unsigned short half = 1;

	return bpf_skb_set_fou_encap(skb, (void *)&half, 0);
}

SEC("xdp") int sets_in_xdp(struct xdp_md *xdp)
{
	return bpf_skb_set_fou_encap((void *)xdp, 0, 0);
}

SEC("xdp") int looks_up(struct xdp_md *xdp)
{
	struct bpf_flowtable_opts opts = {};
	struct bpf_fib_lookup tuple = {.family = 2};
	struct flow_offload_tuple_rhash *found = bpf_xdp_flow_lookup(xdp, &tuple, &opts, sizeof(opts));

	return found ? found->tuple[3] : XDP_PASS;
}

SEC("xdp") int looks_up_unchecked(struct xdp_md *xdp)
{
	struct bpf_flowtable_opts opts = {};
	struct bpf_fib_lookup tuple = {.family = 2};

	return bpf_xdp_flow_lookup(xdp, &tuple, &opts, sizeof(opts))->tuple[3];
}

SEC("xdp") int looks_nothing_up(struct xdp_md *xdp)
{
	struct bpf_flowtable_opts opts = {};

	return !!bpf_xdp_flow_lookup(xdp, 0, &opts, sizeof(opts));
}

char _license[] SEC("license") = "GPL";
