/* A variable of an arena, and no arena. */
#include "../program.h"

u8 __attribute__((address_space(1))) shared[8] = "nowhere";

SEC("syscall")
int program(void *ctx)
{
	return shared[1];
}
