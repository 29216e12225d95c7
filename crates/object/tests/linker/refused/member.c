/* counters: type is incompatible with DIR/second.o: member other instead of right */
#define right other
#include "../shared.h"

extern struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct counter);
} counters FROM(".maps");

void *look_up(u32 key)
{
	return map_lookup(&counters, &key);
}
