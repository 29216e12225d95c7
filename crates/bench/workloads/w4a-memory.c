/* W4a: a memory loop: running sums of 128 pairs of words, and running sums of those,
 * written behind them. */
#include "workload.h"

#define WORDS 128

u32 entry(struct context *context)
{
	u8 *data = data_of(context), *end = end_of(context);

	if (data + 3 * 8 * WORDS > end)
		return 0;
	const u64 *left = (const u64 *)data;
	const u64 *right = left + WORDS;
	u64 *out = (u64 *)data + 2 * WORDS;
	u64 sum = 0, sums = 0;
	for (u32 i = 0; i < WORDS; i++) {
		sum += left[i] ^ right[i];
		sums += sum >> 5;
		out[i] = sums;
	}
	return fold(sum ^ sums);
}
