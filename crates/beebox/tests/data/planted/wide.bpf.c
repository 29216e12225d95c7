/* Bug: a packet with a certain number and cookie stops the program, if it is told to listen to them. */
#include "planted.h"

struct listen {
	u32 number;
	u32 level;
};

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct listen);
} listen SEC(".maps");

SEC("xdp")
int wide(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data;
	u64 *cookie = (void *)(ether + 1);
	u32 *number = (void *)(cookie + 1), key = 2;
	struct listen *told = map_lookup_elem(&listen, &key);

	if (!told || !FITS(number, end) || told->level != 0xdeadbeef)
		return PASS;
	if (*cookie != 0x1122334455667788ULL)
		return PASS;
	return *number == told->number && told->number > 100000 ? ABORTED : PASS;
}
