/* A program whose functions others replace and trace.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c replaced.bpf.c && llvm-strip-19 -g replaced.bpf.o
 */
#include "attach.h"

int count;

noinline int one(struct xdp_md *ctx)
{
	volatile int result = 1;

	if (!ctx)
		return -1;
	return result;
}

noinline int two(struct xdp_md *ctx, int number)
{
	volatile int result = number;

	return result + ctx->ingress_ifindex;
}

static noinline int queue(struct xdp_md *ctx, int *more)
{
	return ctx->rx_queue_index + *more;
}

noinline int shortened(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, 4);
}

noinline int numbers(int one, long other)
{
	volatile int result = one;

	return result + other;
}

SEC("xdp")
int main_program(struct xdp_md *ctx)
{
	int more = 3;

	count += queue(ctx, &more);
	return one(ctx) + two(ctx, 3) + shortened(ctx) + numbers(1, 2) ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
