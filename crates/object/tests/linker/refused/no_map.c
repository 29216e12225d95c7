/* inner: DIR/second.o means something else by it: it is no map: there is no attribute `size` */
#include "../shared.h"

extern struct {
	__uint(type, ARRAY);
	__uint(size, 1);
} inner FROM(".maps");

void *look_up(u32 key)
{
	return map_lookup(&inner, &key);
}
