/* The first lookup is checked, the second is used. */
#include "explain.h"

struct entry {
	u32 next;
	u32 hits;
};

struct {
	__uint(type, HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct entry);
} entries SEC(".maps");

SEC("xdp")
int null_other(struct xdp_md *ctx)
{
	u32 key = ctx->ingress_ifindex;
	struct entry *first = map_lookup_elem(&entries, &key);
	struct entry *second;

	if (!first)
		return XDP_PASS;
	key = first->next;
	second = map_lookup_elem(&entries, &key);
	if (!first)
		return XDP_PASS;
	second->hits++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
