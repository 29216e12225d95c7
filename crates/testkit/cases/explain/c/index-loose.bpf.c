/* The bound of the index is one too large. */
#include "explain.h"

struct histogram {
	u64 buckets[16];
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct histogram);
} histograms SEC(".maps");

SEC("xdp")
int index_loose(struct xdp_md *ctx)
{
	u32 zero = 0, bucket = (ctx->data_end - ctx->data) / 64;
	struct histogram *histogram = map_lookup_elem(&histograms, &zero);

	if (!histogram)
		return XDP_PASS;
	if (bucket > 16)
		bucket = 16;
	histogram->buckets[bucket]++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
