/* The time is read while the lock is held. */
#include "explain.h"

struct clock {
	struct bpf_spin_lock lock;
	u64 last;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

SEC("xdp")
int lock_call(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct clock *clock = map_lookup_elem(&clocks, &zero);

	if (!clock)
		return XDP_PASS;
	spin_lock(&clock->lock);
	clock->last = ktime_get_ns();
	spin_unlock(&clock->lock);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
