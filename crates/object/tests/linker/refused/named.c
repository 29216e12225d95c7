/* counters: type is incompatible with DIR/second.o: a struct called tally instead of called counter */
#define counter tally
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
