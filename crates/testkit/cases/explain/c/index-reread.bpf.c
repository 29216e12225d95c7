/* An index in a map is compared, and read again for its use. */
#include "explain.h"

struct table {
	volatile u64 current;
	u8 slots[64];
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct table);
} tables SEC(".maps");

SEC("xdp")
int index_reread(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct table *table = map_lookup_elem(&tables, &zero);

	if (!table)
		return XDP_PASS;
	if (table->current >= 64)
		return XDP_PASS;
	table->slots[table->current] = 1;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
