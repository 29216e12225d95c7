/* inner: type is incompatible with DIR/second.o: no map: unknown attribute `size` */
#include "../shared.h"

extern struct {
	__uint(type, ARRAY);
	__uint(size, 1);
} inner FROM(".maps");

void *look_up(u32 key)
{
	return map_lookup(&inner, &key);
}
