/*
 * A rate limiter: each sender may send so many bytes, counted on each CPU; what is more is
 * dropped. Runs as a cgroup_skb program, where packets begin with the IP header.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c limit.bpf.c && llvm-strip-19 -g limit.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_PERCPU_HASH = 5, MAP_TYPE_PERCPU_ARRAY = 6 };
enum { DROP, PASS };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static long (*const map_delete_elem)(void *map, const void *key) = (void *)3;

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid;
	u32 data, data_end;
};

struct ip {
	u8 head[12];
	u32 from;
	u32 to;
};

struct spent {
	u64 bytes;
	u32 packets;
	u32 dropped;
};

struct {
	__uint(type, MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct spent);
} senders SEC(".maps");

struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u32);
} verdicts SEC(".maps");

/* Bytes that a sender may send. */
volatile const u64 budget = 4096;
/* Packets without an IPv4 header. */
u32 others;

SEC("cgroup_skb/ingress")
int limit(struct __sk_buff *skb)
{
	struct ip *ip = (void *)(long)skb->data;
	struct spent *spent, none = { 0 };
	u32 verdict = PASS, index, from, *count;

	if ((void *)(ip + 1) > (void *)(long)skb->data_end || ip->head[0] >> 4 != 4) {
		others++;
		return PASS;
	}
	from = ip->from;
	spent = map_lookup_elem(&senders, &from);
	if (!spent) {
		if (map_update_elem(&senders, &from, &none, 1))
			return DROP;
		spent = map_lookup_elem(&senders, &from);
		if (!spent)
			return DROP;
	}
	spent->bytes += skb->len;
	if (spent->bytes > budget) {
		spent->dropped++;
		verdict = DROP;
	} else {
		spent->packets++;
	}
	/* Who answers to itself is forgotten. */
	if (ip->from == ip->to)
		map_delete_elem(&senders, &from);
	index = verdict;
	count = map_lookup_elem(&verdicts, &index);
	if (count)
		(*count)++;
	return verdict;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
