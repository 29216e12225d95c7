/* limit: type is incompatible with DIR/second.o: an integer of 8 bytes instead of 4 */
#include "../shared.h"

extern u64 limit;

u64 read_limit(void)
{
	return limit;
}
