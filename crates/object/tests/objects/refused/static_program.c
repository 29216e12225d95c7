/* A program that nobody outside can name. */
#include "../program.h"

SEC("socket")
static int program(void *ctx)
{
	return 0;
}
