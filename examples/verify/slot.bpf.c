/*
 * Counts in the slot that a map names. Refused: the index has a sign, and only its upper
 * bound is checked.
 *
 * Needs no header. Build:
 *   clang -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c slot.bpf.c && llvm-strip -g slot.bpf.o
 */
typedef unsigned int u32;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;

enum { MAP_TYPE_ARRAY = 2, PASS = 2, SLOTS = 8 };

struct table {
	int current;
	u32 slots[SLOTS];
};

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct table);
} tables SEC(".maps");

SEC("xdp")
int slot(void *ctx)
{
	u32 zero = 0;
	struct table *table = map_lookup_elem(&tables, &zero);
	int current;

	if (!table)
		return PASS;
	current = table->current;
	if (current >= SLOTS)
		return PASS;
	table->slots[current]++;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
