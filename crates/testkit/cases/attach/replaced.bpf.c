/* A program whose functions others replace and trace.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c replaced.bpf.c && llvm-strip-19 -g replaced.bpf.o
 */
#include "attach.h"

int count;
const volatile int never;

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

static noinline int removed_static(void)
{
	volatile int result = 5;

	return result;
}

noinline int removed(struct xdp_md *ctx)
{
	return ctx->ingress_ifindex + removed_static();
}

/* Linux removes the two above where they are never called, and their func_info, but not what it
 * keeps beside it: it takes what is known of queue for that of last. */
noinline int next_to_last(struct xdp_md *ctx)
{
	return ctx->ingress_ifindex;
}

noinline int last(struct xdp_md *ctx)
{
	return ctx->rx_queue_index;
}

SEC("xdp")
int main_program(struct xdp_md *ctx)
{
	int more = 3, sum;

	sum = one(ctx) + two(ctx, 3) + shortened(ctx) + numbers(1, 2);
	if (never)
		sum += removed(ctx);
	count += queue(ctx, &more) + next_to_last(ctx) + last(ctx);
	return sum ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
