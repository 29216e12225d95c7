/* W6b: SHA-256 (FIPS 180-4) of 4 blocks: rounds unrolled, constants in the
 * instructions, the message schedule of 16 words on the stack. The data are
 * whole blocks, padding included; the first word of the digest comes back. */
#include "workload.h"

#define BLOCKS 4
#define BLOCK 64

#define rotr(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define choose(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define majority(x, y, z) (((x) & (y)) ^ ((x) & (z)) ^ ((y) & (z)))
#define big0(x) (rotr(x, 2) ^ rotr(x, 13) ^ rotr(x, 22))
#define big1(x) (rotr(x, 6) ^ rotr(x, 11) ^ rotr(x, 25))
#define small0(x) (rotr(x, 7) ^ rotr(x, 18) ^ (x) >> 3)
#define small1(x) (rotr(x, 17) ^ rotr(x, 19) ^ (x) >> 10)

#define round(a, b, c, d, e, f, g, h, i, k)                                    \
	do {                                                                   \
		u32 t = h + big1(e) + choose(e, f, g) + (k) + w[(i) & 15];     \
		opaque(t);                                                     \
		d += t;                                                        \
		h = t + big0(a) + majority(a, b, c);                           \
	} while (0)
#define expand(i)                                                              \
	w[(i) & 15] += small1(w[((i) + 14) & 15]) + w[((i) + 9) & 15] +        \
		       small0(w[((i) + 1) & 15])
#define scheduled(a, b, c, d, e, f, g, h, i, k)                                \
	do {                                                                   \
		expand(i);                                                     \
		round(a, b, c, d, e, f, g, h, i, k);                           \
	} while (0)
#define eight(one, i, k0, k1, k2, k3, k4, k5, k6, k7)                          \
	do {                                                                   \
		one(a, b, c, d, e, f, g, h, i, k0);                            \
		one(h, a, b, c, d, e, f, g, i + 1, k1);                        \
		one(g, h, a, b, c, d, e, f, i + 2, k2);                        \
		one(f, g, h, a, b, c, d, e, i + 3, k3);                        \
		one(e, f, g, h, a, b, c, d, i + 4, k4);                        \
		one(d, e, f, g, h, a, b, c, i + 5, k5);                        \
		one(c, d, e, f, g, h, a, b, i + 6, k6);                        \
		one(b, c, d, e, f, g, h, a, i + 7, k7);                        \
	} while (0)

inlined void compress(u32 *state, const u8 *block)
{
	u32 schedule[16];
	u32 *w = schedule;

	/* Else all of it would be taken for 64 values to keep in registers. */
	opaque(w);
	for (u32 i = 0; i < 16; i++)
		w[i] = word(block + 4 * i);
	u32 a = state[0], b = state[1], c = state[2], d = state[3];
	u32 e = state[4], f = state[5], g = state[6], h = state[7];
	eight(round, 0, 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	      0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5);
	eight(round, 8, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	      0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174);
	eight(scheduled, 16, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
	      0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da);
	eight(scheduled, 24, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967);
	eight(scheduled, 32, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	      0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85);
	eight(scheduled, 40, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	      0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070);
	eight(scheduled, 48, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
	      0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3);
	eight(scheduled, 56, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	      0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2);
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);

	if (data + BLOCKS * BLOCK > end)
		return 0;
	u32 state[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
#pragma clang loop unroll(disable)
	for (u32 block = 0; block < BLOCKS; block++)
		compress(state, data + block * BLOCK);
	return state[0];
}
