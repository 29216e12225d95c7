/* Defines what first.c uses, and has static things of the same names. */
#include "shared.h"

u32 limit = 42;
const volatile u64 mask = 0xff;

struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct counter);
} counters SEC(".maps");

struct inner {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} inner SEC(".maps");

struct {
	__uint(type, ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u32);
	struct inner *values[];
} outer SEC(".maps") = { .values = { [1] = &inner } };

static volatile u64 hits[3];
static volatile u32 start = 9;

static __noinline int step(u32 by)
{
	hits[by & 1] += start;
	return hits[1] * by;
}

/* Stronger than that of first.c. */
int pick(void)
{
	return step(2);
}

__hidden int add_pair(struct pair *pair)
{
	return pair->left + pair->right + step(3);
}

SEC("raw_tp/second")
int second(void *ctx)
{
	u32 key = 0;
	struct counter *counter = map_lookup(&counters, &key);

	return counter ? add_pair(&counter->sides) : 0;
}

/* The same section as in first.c. */
SEC("raw_tp/first")
int first_again(void *ctx)
{
	return pick();
}

char terms[] SEC("license") = "GPL";
