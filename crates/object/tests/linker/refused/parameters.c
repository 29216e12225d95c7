/* add_pair: type is incompatible with DIR/second.o: 2 parameters instead of 1 */
#include "../shared.h"

extern int add_pair(struct pair *pair, u32 more);

int add_more(struct pair *pair)
{
	return add_pair(pair, 1);
}
