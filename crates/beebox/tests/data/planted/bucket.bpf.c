/*
 * Lets a sender send ten packets at once, and one more each second. Bug: after a long pause the bucket has
 * more than ten.
 */
#include "planted.h"

struct bucket {
	u64 filled;
	u64 tokens;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

SEC("xdp")
int bucket(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	struct ip *ip = (void *)(ether + 1);
	struct bucket *bucket;
	u64 now, seconds;

	if (!FITS(ip, end) || ether->type != swap16(IPV4))
		return PASS;
	now = ktime_get_ns();
	bucket = map_lookup_elem(&buckets, &ip->from);
	if (!bucket) {
		struct bucket first = { .filled = now, .tokens = 9 };

		map_update_elem(&buckets, &ip->from, &first, 0);
		return PASS;
	}
	seconds = (now - bucket->filled) / 1000000000;
	if (seconds && bucket->tokens < 10) {
		bucket->tokens += seconds > 3600 ? 10 : seconds;
		if (seconds <= 3600 && bucket->tokens > 10)
			bucket->tokens = 10;
		bucket->filled = now;
	}
	if (!bucket->tokens)
		return DROP;
	bucket->tokens--;
	return PASS;
}
