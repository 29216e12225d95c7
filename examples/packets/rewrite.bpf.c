/*
 * A tc program that sends packets for one address to another one, with the checksums of
 * IP, TCP and UDP, and drops what it must not forward.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c rewrite.bpf.c && llvm-strip-19 -g rewrite.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_HASH = 1 };
enum { ETHER_IPV4 = 0x0800, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
enum { TC_ACT_OK = 0, TC_ACT_SHOT = 2 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid;
	u32 data, data_end;
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

struct target {
	u32 address;
	u64 packets;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct target);
} targets SEC(".maps");

/* Replaces 32 bits of what a checksum covers (RFC 1624). */
static void replace(u16 *checksum, u32 from, u32 to)
{
	u32 sum = (u16)~*checksum;

	sum += (u16)~from + (u16)(~from >> 16) + (u16)to + (to >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	*checksum = ~sum;
}

SEC("tc")
int rewrite(struct __sk_buff *skb)
{
	void *start = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ether *ether = start;
	struct ip *ip = (void *)(ether + 1);
	struct target *target;
	u16 *checksum;
	u32 old;

	if ((void *)(ip + 1) > end || skb->protocol != __builtin_bswap16(ETHER_IPV4))
		return TC_ACT_OK;
	if (ip->ttl <= 1)
		return TC_ACT_SHOT;
	old = ip->to;
	target = map_lookup_elem(&targets, &old);
	if (!target)
		return TC_ACT_OK;
	target->packets++;
	skb->mark = target->packets;
	skb->cb[1] = skb->len;
	ip->to = target->address;
	replace(&ip->checksum, old, target->address);
	if (ip->ihl != 5 || ip->fragment & 0xff1f)
		return TC_ACT_OK;
	if (ip->protocol == PROTOCOL_TCP)
		checksum = (void *)(ip + 1) + 16;
	else if (ip->protocol == PROTOCOL_UDP)
		checksum = (void *)(ip + 1) + 6;
	else
		return TC_ACT_OK;
	if ((void *)(checksum + 1) > end || !*checksum)
		return TC_ACT_OK;
	replace(checksum, old, target->address);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
