/* pick: symbol is defined in DIR/second.o too: make one of them weak or static */
#include "../shared.h"

int pick(void)
{
	return 3;
}
