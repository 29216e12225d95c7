/* A path returns while the lock is held. */
#include "explain.h"

struct account {
	struct bpf_spin_lock lock;
	u32 left;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

SEC("xdp")
int lock_held(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct account *account = map_lookup_elem(&accounts, &zero);

	if (!account)
		return XDP_PASS;
	spin_lock(&account->lock);
	if (!account->left)
		return XDP_DROP;
	account->left--;
	spin_unlock(&account->lock);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
