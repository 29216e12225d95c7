/* W1: `port 22`, as libpcap means it for Ethernet, on every frame of a batch:
 * how many match. */
#include "workload.h"

#define FRAMES 24

inlined int has_ports(u8 protocol)
{
	return protocol == 6 || protocol == 17 || protocol == 132;
}

inlined int is_port_22(const u8 *frame, const u8 *end)
{
	if (frame + 58 > end)
		return 0;
	u16 type = half(frame + 12);
	if (type == 0x86dd)
		return has_ports(frame[20]) && (half(frame + 54) == 22 || half(frame + 56) == 22);
	if (type != 0x0800 || !has_ports(frame[23]) || half(frame + 20) & 0x1fff)
		return 0;
	const u8 *ports = frame + 14 + (frame[14] & 15) * 4;
	if (ports + 4 > end)
		return 0;
	return half(ports) == 22 || half(ports + 2) == 22;
}

u32 entry(struct context *context)
{
	const u8 *frame = data_of(context), *end = end_of(context);
	u32 matches = 0;

	for (u32 i = 0; i < FRAMES; i++) {
		/* One pointer, or the verifier does not know it again. */
		opaque(frame);
		matches += is_port_22(frame, end);
		frame += SLOT;
	}
	return matches;
}
