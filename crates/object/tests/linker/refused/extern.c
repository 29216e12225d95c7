/* limit: it is to be defined elsewhere, which can't be checked without types: compile with -g */
/* (compiled with -g0) */
#include "../shared.h"

extern u32 limit;

static u32 SEC("raw_tp/third") read_limit(void)
{
	return limit;
}
