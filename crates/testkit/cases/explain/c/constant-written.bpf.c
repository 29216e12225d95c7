/* A constant is written through a pointer. */
#include "explain.h"

const volatile u32 limit = 10;

SEC("xdp")
int constant_written(struct xdp_md *ctx)
{
	*(volatile u32 *)&limit += 1;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
