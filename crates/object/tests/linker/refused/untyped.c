/* read_limit: visible symbol in a file without BTF: compile with -g */
/* (compiled with -g0) */
#include "../shared.h"

extern u32 limit;

u32 read_limit(void)
{
	return limit;
}
