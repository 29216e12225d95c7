/* Like count.bpf.c, but main.bpf.c takes `sample_every` for 32 bits. */
#include "count.h"

u64 sample_every = 1;

int count(u32 bytes)
{
	return 0;
}
