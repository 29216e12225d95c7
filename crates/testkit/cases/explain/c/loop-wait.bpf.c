/* A loop that waits for a variable that another program changes. */
#include "explain.h"

volatile u32 ready;

SEC("xdp")
int loop_wait(struct xdp_md *ctx)
{
	while (!ready)
		;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
