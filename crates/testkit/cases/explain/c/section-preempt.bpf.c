/* Preemption is enabled that was not disabled. */
#include "explain.h"

extern void bpf_preempt_enable(void) __attribute__((section(".ksyms")));

SEC("xdp")
int section_preempt(struct xdp_md *ctx)
{
	bpf_preempt_enable();
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
