/* limit: undefined symbol cannot be checked without BTF: compile with -g */
/* (compiled with -g0) */
#include "../shared.h"

extern u32 limit;

static u32 SEC("raw_tp/third") read_limit(void)
{
	return limit;
}
