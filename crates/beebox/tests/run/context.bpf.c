/*
 * Programs that record what their contexts hold.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c context.bpf.c && llvm-strip-19 -g context.bpf.o
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index;
};

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid;
	u32 data, data_end, napi_id, family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4];
	u32 remote_port, local_port, data_meta;
	u64 flow_keys, tstamp;
	u32 wire_len, gso_segs;
	u64 sk;
	u32 gso_size;
	u8 tstamp_type;
	u64 hwtstamp;
};

u64 seen[32];
static long (*const skb_load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;
unsigned long long load_byte(void *skb, unsigned long long off) asm("llvm.bpf.load.byte");

static int common(volatile struct __sk_buff *skb)
{
	seen[0] = skb->len;
	seen[1] = skb->pkt_type;
	seen[2] = skb->mark;
	seen[3] = skb->queue_mapping;
	seen[4] = skb->protocol;
	seen[5] = skb->vlan_present;
	seen[6] = skb->vlan_tci;
	seen[7] = skb->vlan_proto;
	seen[8] = skb->priority;
	seen[9] = skb->ingress_ifindex;
	seen[10] = skb->ifindex;
	seen[11] = skb->tc_index;
	seen[12] = skb->hash;
	seen[13] = skb->napi_id;
	seen[14] = skb->gso_segs;
	seen[15] = skb->gso_size;
	skb->cb[0] = 11;
	skb->cb[4] = 15;
	return 0;
}

SEC("tc")
int of_tc(volatile struct __sk_buff *skb)
{
	common(skb);
	seen[16] = skb->wire_len;
	seen[17] = skb->tc_classid;
	seen[18] = skb->tstamp;
	seen[19] = skb->data_end - skb->data;
	seen[20] = skb->data - skb->data_meta;
	seen[21] = skb->tstamp_type;
	skb->mark = 5;
	skb->priority = 6;
	skb->tstamp = 7;
	skb->tc_index = 8;
	skb->queue_mapping = 9;
	return -1;
}

SEC("cgroup_skb/egress")
int of_cgroup(volatile struct __sk_buff *skb)
{
	common(skb);
	seen[16] = skb->family;
	seen[17] = skb->remote_ip4;
	seen[18] = skb->local_ip4;
	seen[19] = skb->data_end - skb->data;
	seen[20] = skb->remote_port;
	seen[21] = skb->local_port;
	seen[22] = skb->remote_ip6[0];
	seen[23] = skb->remote_ip6[3];
	seen[24] = skb->local_ip6[0];
	seen[25] = skb->local_ip6[3];
	skb->mark = 5;
	return 3;
}

SEC("socket")
int of_socket(volatile struct __sk_buff *skb)
{
	common(skb);
	skb_load_bytes((void *)skb, 3, &seen[16], 8);
	seen[17] = load_byte((void *)skb, 0);
	seen[18] = load_byte((void *)skb, 40);
	return seen[17];
}

SEC("xdp")
int of_xdp(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data;

	seen[0] = ctx->data_end - ctx->data;
	seen[1] = ctx->data - ctx->data_meta;
	seen[2] = ctx->ingress_ifindex;
	seen[3] = ctx->rx_queue_index;
	if (data + 14 <= (u8 *)(long)ctx->data_end)
		data[0] ^= 0x55;
	return seen[0] & 7;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
