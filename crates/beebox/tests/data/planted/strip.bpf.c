/* Removes all VLAN tags. Bug: it removes one. */
#include "planted.h"

SEC("xdp")
int strip(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ether *ether = (void *)(long)ctx->data, copy;

	if ((void *)(ether + 1) + 4 > end || ether->type != swap16(VLAN))
		return PASS;
	__builtin_memcpy(&copy, ether, 12);
	if (xdp_adjust_head(ctx, 4))
		return DROP;
	end = (void *)(long)ctx->data_end;
	ether = (void *)(long)ctx->data;
	if (!FITS(ether, end))
		return DROP;
	__builtin_memcpy(ether, &copy, 12);
	return PASS;
}
