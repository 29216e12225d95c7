/* A map that another object defines. */
#include "../program.h"

extern struct {
	NUMBER(type, 2);
	NUMBER(max_entries, 1);
	int *key;
	int *value;
} counts __attribute__((section(".maps")));

SEC("socket") int program(void *ctx)
{
	int key = 0;

	return map_lookup(&counts, &key) != 0;
}
