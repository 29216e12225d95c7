/* An RCU section is begun in another one. */
#include "explain.h"

extern void bpf_rcu_read_lock(void) __attribute__((section(".ksyms")));
extern void bpf_rcu_read_unlock(void) __attribute__((section(".ksyms")));

SEC("xdp")
int section_nested(struct xdp_md *ctx)
{
	bpf_rcu_read_lock();
	bpf_rcu_read_lock();
	bpf_rcu_read_unlock();
	bpf_rcu_read_unlock();
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
