/* A map as BCC has it: the section names its kind. */
#include "../program.h"

struct {
	u32 type, key_size, value_size, max_entries;
} table SEC("maps/hash") = { 1, 4, 8, 16 };

SEC("socket")
int program(void *ctx)
{
	u32 key = 0;

	return map_lookup(&table, &key) != 0;
}
