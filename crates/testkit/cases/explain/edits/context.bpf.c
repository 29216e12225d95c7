/* Accesses to members of the context that the compiler makes one access of. */
#include "edits.h"

#ifdef EDIT
#define apart __attribute__((preserve_static_offset))
#else
#define apart
#endif

struct device {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
} apart;

struct buffer {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash;
} apart;

const volatile int which;

SEC("xdp")
int two_members(struct device *ctx)
{
	u32 index;

	switch (which) { /* refused two_members: modified-pointer | `ingress_ifindex` and `rx_queue_index` | preserve_static_offset | line 26 chooses */
	case 0:
		index = ctx->ingress_ifindex;
		break;
	case 1:
		index = ctx->rx_queue_index;
		break;
	default:
		return XDP_PASS;
	}
	return index == 7 ? XDP_DROP : XDP_PASS;
}

SEC("tc")
int three_members(struct buffer *ctx)
{
	switch (which) {
	case 0:
		return ctx->mark == 7;
	case 1:
		return ctx->priority == 7; /* refused three_members: modified-pointer | `mark`, `priority` or `hash` of the context | preserve_static_offset */
	case 2:
		return ctx->hash == 7;
	}
	return 0;
}

SEC("tc")
int written(struct buffer *ctx)
{
	if (which) /* refused written: modified-pointer | `mark` and `priority` | preserve_static_offset */
		ctx->priority = 7;
	else
		ctx->mark = 7;
	return 0;
}

/* An index over an array of the context */
SEC("tc")
int indexed(struct buffer *ctx)
{
	u32 index = ctx->len & 3;
#ifdef EDIT
	u32 value = index == 0 ? ctx->cb[0] : index == 1 ? ctx->cb[1] : index == 2 ? ctx->cb[2] : ctx->cb[3];

	return value == 7;
#else
	return ctx->cb[index] == 7; /* refused indexed: modified-pointer | a variable offset, at `cb` | choose by constants */
#endif
}

static noinline u32 read_member(u32 *member)
{
	asm volatile("");
	return *member; /* refused pointer_to_member: modified-pointer | pass the member's value */
}

SEC("tc")
int pointer_to_member(struct buffer *ctx)
{
#ifdef EDIT
	u32 mark = ctx->mark;

	return read_member(&mark) == 7;
#else
	return read_member(&ctx->mark) == 7;
#endif
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
