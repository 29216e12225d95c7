/* A value is copied with its lock. */
#include "explain.h"

struct account {
	u32 left;
	struct bpf_spin_lock lock;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

SEC("xdp")
int lock_copied(struct xdp_md *ctx)
{
	u32 zero = 0;
	volatile struct account *account = map_lookup_elem(&accounts, &zero);

	if (!account)
		return XDP_PASS;
	return account->lock.val == 0 ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
