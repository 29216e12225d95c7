/* A map with a value of `pinning` that libbpf does not know. */
#include "../program.h"

struct {
	NUMBER(type, 2);
	NUMBER(pinning, 7);
	NUMBER(max_entries, 1);
	int *key;
	int *value;
} counts SEC(".maps");

SEC("socket") int program(void *ctx)
{
	int key = 0;

	return map_lookup(&counts, &key) != 0;
}
