/* W4c: the checksum of the Internet over 1,460 bytes: 16-bit words, added with
 * end-around carry. */
#include "workload.h"

#define WORDS 730

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);
	u32 sum = 0;

	if (data + 2 * WORDS > end)
		return 0;
	for (u32 i = 0; i < WORDS; i++)
		sum += ((const u16 *)data)[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~sum;
}
