/* W0: nothing. What it costs to enter a program and to leave it. */
#include "workload.h"

u32 entry(struct context *context)
{
	return 0;
}
