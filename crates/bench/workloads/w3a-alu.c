/* W3a: straight arithmetic, 64 and 32 bits wide: shifts, sums, products, masks;
 * four values that depend on one another, so no vector unit helps. */
#include "workload.h"

#define ROUNDS 64

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);

	if (data + 32 > end)
		return 0;
	const u64 *seeds = (const u64 *)data;
	u64 a = seeds[0], b = seeds[1], c = seeds[2];
	u32 d = (u32)seeds[3];
	for (u32 round = 0; round < ROUNDS; round++) {
		a += b ^ 0x5bd1e995;
		b -= c >> 7;
		c ^= a << 3;
		d += (u32)c | 0x11;
		a ^= a >> 12;
		b += (u64)d * 0x2545f491;
		c += b & 0x00ff00ff;
		d ^= d >> 15;
		a -= d;
		b ^= b << 25;
		c = c * 5 + round;
		d = d * 0x9e37 - (u32)a;
		a |= c >> 40;
		b += a;
		c -= b >> 3;
		d &= ~(u32)b | 0xf0f0;
	}
	return fold(a + b + c) ^ d;
}
