/* A function that only a tag names. */
#include "program.h"

static NOINLINE int helped(int x)
{
	return x + (int)ktime_get_ns();
}

NOINLINE int caught(u64 cookie)
{
	return helped((int)cookie);
}

SEC("tc")
TAG("exception_callback:caught")
int throws(void *ctx)
{
	return helped(2);
}

SEC("tc")
int does_not(void *ctx)
{
	return 0;
}
