/* limit: type is incompatible with DIR/second.o: a function instead of a variable */
#include "../shared.h"

extern int limit(void);

int call_limit(void)
{
	return limit();
}
