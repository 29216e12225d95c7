/* A call into a section of programs. */
#include "../program.h"

SEC("tc")
NOINLINE int called(void *ctx)
{
	return (int)ktime_get_ns();
}

SEC("xdp")
int program(struct xdp_md *ctx)
{
	return called(ctx);
}
