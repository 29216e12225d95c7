/* W8: the lowest set bit of numbers, each found by a ladder of tests, as people
 * write it where the instruction set has no such instruction: of as many as a
 * test run in the kernel takes, because processors learn the branches of few. */
#include "workload.h"

#define NUMBERS 384

inlined u32 first_set(u64 x)
{
	u32 n = 0;

	if (!(x & 0xffffffff)) {
		n += 32;
		x >>= 32;
	}
	if (!(x & 0xffff)) {
		n += 16;
		x >>= 16;
	}
	if (!(x & 0xff)) {
		n += 8;
		x >>= 8;
	}
	if (!(x & 0xf)) {
		n += 4;
		x >>= 4;
	}
	if (!(x & 3)) {
		n += 2;
		x >>= 2;
	}
	if (!(x & 1))
		n += 1;
	return n;
}

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);
	u32 sum = 0;

	if (data + 8 * NUMBERS > end)
		return 0;
	for (u32 i = 0; i < NUMBERS; i++)
		sum += first_set(((const u64 *)data)[i]);
	return sum;
}
