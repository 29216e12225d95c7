/* The count of an address is raised without a check that there is one. */
#include "explain.h"

struct {
	__uint(type, HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

SEC("xdp")
int null_check(struct xdp_md *ctx)
{
	u32 key = ctx->ingress_ifindex;
	u64 *count;

	count = map_lookup_elem(&counts, &key);
	*count += 1;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
