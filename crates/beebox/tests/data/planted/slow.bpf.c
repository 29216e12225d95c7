/* Takes some hundredths of a second for a packet. No bug: campaigns end in time with it. */
#include "planted.h"

static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

u64 sum;

static long add(u64 number, u64 *context)
{
	*context += number ^ *context >> 3;
	return 0;
}

SEC("xdp")
int slow(struct xdp_md *ctx)
{
	u64 own = 1;

	loop(8000000, add, &own, 0);
	sum = own;
	return PASS;
}
