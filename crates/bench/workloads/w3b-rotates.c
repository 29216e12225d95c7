/* W3b: rotates, as hashes and ciphers use them: a round of SipHash (64 bits
 * wide) and a quarter round of ChaCha (32 bits wide), again and again. */
#include "workload.h"

#define ROUNDS 64

#define rotl64(x, n) ((x) << (n) | (x) >> (64 - (n)))
#define rotl32(x, n) ((x) << (n) | (x) >> (32 - (n)))

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);

	if (data + 48 > end)
		return 0;
	const u64 *keys = (const u64 *)data;
	const u32 *words = (const u32 *)(data + 32);
	u64 v0 = keys[0], v1 = keys[1], v2 = keys[2], v3 = keys[3];
	for (u32 round = 0; round < ROUNDS; round++) {
		v0 += v1;
		v1 = rotl64(v1, 13);
		v1 ^= v0;
		v0 = rotl64(v0, 32);
		v2 += v3;
		v3 = rotl64(v3, 16);
		v3 ^= v2;
		v0 += v3;
		v3 = rotl64(v3, 21);
		v3 ^= v0;
		v2 += v1;
		v1 = rotl64(v1, 17);
		v1 ^= v2;
		v2 = rotl64(v2, 32);
	}
	u32 a = words[0], b = words[1], c = words[2], d = words[3];
	for (u32 round = 0; round < ROUNDS; round++) {
		a += b;
		d = rotl32(d ^ a, 16);
		c += d;
		b = rotl32(b ^ c, 12);
		a += b;
		d = rotl32(d ^ a, 8);
		c += d;
		b = rotl32(b ^ c, 7);
	}
	return fold(v0 ^ v1 ^ v2 ^ v3) ^ a ^ b ^ c ^ d;
}
