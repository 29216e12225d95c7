/* W4b: a histogram of 1,024 bytes in 64 counters on the stack, and what it
 * says: the most frequent bin and how often each pair of bins is equal. */
#include "workload.h"

#define BYTES 1024
#define BINS 64

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);
	u32 bins[BINS];

	if (data + BYTES > end)
		return 0;
	for (u32 bin = 0; bin < BINS; bin++)
		bins[bin] = 0;
	for (u32 i = 0; i < BYTES; i++)
		bins[data[i] >> 2]++;
	u32 greatest = 0, where = 0, pairs = 0;
	for (u32 bin = 1; bin < BINS; bin++) {
		if (bins[bin] > greatest) {
			greatest = bins[bin];
			where = bin;
		}
		if (bins[bin] == bins[bin - 1])
			pairs++;
	}
	return greatest << 16 | where << 8 | pairs;
}
