/*
 * Programs of every type with a packet, which record all numbers that their contexts have.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c fields.bpf.c && llvm-strip-19 -g fields.bpf.o
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

u64 seen[48];

static __attribute__((always_inline)) void of_all(volatile struct __sk_buff *skb)
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
	seen[12] = skb->cb[0];
	seen[13] = skb->cb[1];
	seen[14] = skb->cb[2];
	seen[15] = skb->cb[3];
	seen[16] = skb->cb[4];
	seen[17] = skb->hash;
	seen[18] = skb->napi_id;
	seen[19] = skb->gso_segs;
	seen[20] = skb->gso_size;
	/* Parts of fields. */
	seen[21] = *((volatile u8 *)&skb->len + 1);
	seen[22] = *((volatile u8 *)&skb->mark + 3);
	seen[23] = *((volatile u8 *)&skb->protocol + 1);
}

static __attribute__((always_inline)) void of_times(volatile struct __sk_buff *skb)
{
	seen[24] = skb->tstamp;
	seen[25] = skb->hwtstamp;
}

static __attribute__((always_inline)) void of_tc(volatile struct __sk_buff *skb)
{
	of_all(skb);
	of_times(skb);
	seen[26] = skb->wire_len;
	seen[27] = skb->tc_classid;
	seen[28] = skb->tstamp_type;
}

static __attribute__((always_inline)) void of_cgroup(volatile struct __sk_buff *skb)
{
	of_all(skb);
	of_times(skb);
	seen[29] = skb->family;
	seen[30] = skb->remote_ip4;
	seen[31] = skb->local_ip4;
	seen[32] = skb->remote_ip6[0];
	seen[33] = skb->remote_ip6[1];
	seen[34] = skb->remote_ip6[2];
	seen[35] = skb->remote_ip6[3];
	seen[36] = skb->local_ip6[0];
	seen[37] = skb->local_ip6[1];
	seen[38] = skb->local_ip6[2];
	seen[39] = skb->local_ip6[3];
	seen[40] = skb->remote_port;
	seen[41] = skb->local_port;
}

#define PROGRAM(name, section, read) \
	SEC(section) int name(volatile struct __sk_buff *skb) { read(skb); return 1; }

PROGRAM(classifier, "tc", of_tc)
PROGRAM(actor, "action", of_tc)
PROGRAM(filter, "socket", of_all)
PROGRAM(ingress, "cgroup_skb/ingress", of_cgroup)
PROGRAM(egress, "cgroup_skb/egress", of_cgroup)
PROGRAM(tunnel_in, "lwt_in", of_all)
PROGRAM(tunnel_out, "lwt_out", of_all)
PROGRAM(tunnel_xmit, "lwt_xmit", of_all)

SEC("xdp")
int driver(volatile struct xdp_md *ctx)
{
	seen[0] = ctx->ingress_ifindex;
	seen[1] = ctx->rx_queue_index;
	return 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
