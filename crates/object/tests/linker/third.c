/* A library: nothing here is a program. */
#include "shared.h"

extern u32 limit __weak;
extern int seen;

__weak int choose(u32 value)
{
	return value + 20;
}

/* Nobody calls it, and nobody else knows it. */
int spare(struct counter *counter)
{
	static u64 calls;

	calls++;
	return calls + seen + limit + counter->sides.right;
}
