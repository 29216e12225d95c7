/* A map as gobpf has it: the section names the map. */
#include "../program.h"

struct {
	u32 type, key_size, value_size, max_entries, flags;
} table SEC("maps/table") = { 1, 4, 8, 16, 0 };

SEC("socket")
int program(void *ctx)
{
	u32 key = 0;

	return map_lookup(&table, &key) != 0;
}
