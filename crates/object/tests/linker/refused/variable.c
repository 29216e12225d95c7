/* limit: DIR/second.o means something else by it: a function instead of a variable */
#include "../shared.h"

extern int limit(void);

int call_limit(void)
{
	return limit();
}
