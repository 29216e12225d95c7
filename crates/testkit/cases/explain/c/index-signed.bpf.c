/* A signed index is compared with its upper bound only. */
#include "explain.h"

struct table {
	s32 current;
	u32 slots[8];
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct table);
} tables SEC(".maps");

SEC("xdp")
int index_signed(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct table *table = map_lookup_elem(&tables, &zero);
	s32 current;

	if (!table)
		return XDP_PASS;
	current = table->current;
	if (current >= 8)
		return XDP_PASS;
	table->slots[current]++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
