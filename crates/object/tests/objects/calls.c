/* Programs that share functions: each gets those that it calls, in the order of
 * its own calls. */
#include "program.h"

struct {
	NUMBER(type, 2);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, u64);
} counts SEC(".maps");

static NOINLINE u64 leaf(u64 x)
{
	u32 key = x & 3;
	u64 *value = map_lookup(&counts, &key);

	return value ? *value + x : 0;
}

/* Global: its caller does not know what it returns. */
NOINLINE int middle(int x)
{
	return leaf(x) + leaf(x + 1);
}

/* Global for other files of one object; static for the kernel. */
HIDDEN NOINLINE int hidden(int x)
{
	return x * 3 + (int)leaf(x);
}

WEAK NOINLINE int replaceable(int x)
{
	return hidden(x) ^ middle(x);
}

static long each(u32 index, u64 *sum)
{
	*sum += leaf(index);
	return 0;
}

static long every(void *map, u32 *key, u64 *value, u64 *sum)
{
	*sum += *value + *key;
	return 0;
}

SEC("xdp")
int straight(struct xdp_md *ctx)
{
	return middle(ctx->rx_queue_index) & 1 ? 2 : 1;
}

SEC("xdp")
int backwards(struct xdp_md *ctx)
{
	return replaceable(ctx->data) + hidden(ctx->ingress_ifindex);
}

SEC("?xdp.frags")
int looping(struct xdp_md *ctx)
{
	u64 sum = 0;

	loop(8, each, &sum, 0);
	for_each_map_elem(&counts, every, &sum, 0);
	return sum & 1;
}

SEC("socket")
int alone(void *ctx)
{
	return (int)ktime_get_ns();
}
