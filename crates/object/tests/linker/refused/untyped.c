/* read_limit: other files can see it, but there are no types in the file: compile with -g */
/* (compiled with -g0) */
#include "../shared.h"

extern u32 limit;

u32 read_limit(void)
{
	return limit;
}
