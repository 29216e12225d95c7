/* A helper for GPL-compatible programs. */
#include "explain.h"

SEC("kprobe/do_nanosleep")
int licence(u64 *ctx)
{
	u32 flags = 0;

	probe_read_kernel(&flags, sizeof(flags), (void *)ctx[14]);
	return flags & 1;
}

char LICENSE[] SEC("license") = "Apache-2.0";
