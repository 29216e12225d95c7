/* Variables of every kind, a map in no section of its own, and pointers to them. */
#include "program.h"

struct {
	NUMBER(type, 1);
	NUMBER(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u64);
} table SEC(".maps");

struct {
	NUMBER(type, 33);
	NUMBER(map_flags, 1 << 10);
	NUMBER(max_entries, 2);
} arena SEC(".maps");

const volatile u32 limit = 7;
static const char text[] = "constant";
u64 counter;
static u64 hits[4];
int start = -3;
u32 own SEC(".data.own") = 5;
u8 __attribute__((address_space(1))) shared[64] = "in the arena";

SEC("tracepoint/syscalls/sys_enter_nanosleep")
int variables(void *ctx)
{
	u32 key = limit;
	u64 *value = map_lookup(&table, &key);

	counter += start;
	hits[key & 3] += own;
	if (value)
		*value += text[key & 7];
	return 0;
}

SEC("syscall")
int arenas(void *ctx)
{
	return shared[3] + (map_lookup(&arena, ctx) != 0);
}
