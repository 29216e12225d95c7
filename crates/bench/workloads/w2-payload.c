/* W2: `tcp port 22` with payload: the length that the IPv4 header states, less
 * both headers, is not 0. On every frame of a batch: how many match. */
#include "workload.h"

#define FRAMES 24

inlined int has_payload(const u8 *frame, const u8 *end)
{
	if (frame + 54 > end || half(frame + 12) != 0x0800)
		return 0;
	if (frame[23] != 6 || half(frame + 20) & 0x1fff)
		return 0;
	u32 header = (frame[14] & 15) * 4;
	const u8 *tcp = frame + 14 + header;
	if (tcp + 20 > end)
		return 0;
	if (half(tcp) != 22 && half(tcp + 2) != 22)
		return 0;
	return half(frame + 16) - header - ((tcp[12] & 0xf0) >> 2) != 0;
}

u32 entry(struct context *context)
{
	const u8 *frame = data_of(context), *end = end_of(context);
	u32 matches = 0;

	for (u32 i = 0; i < FRAMES; i++) {
		/* One pointer, or the verifier does not know it again. */
		opaque(frame);
		matches += has_payload(frame, end);
		frame += SLOT;
	}
	return matches;
}
