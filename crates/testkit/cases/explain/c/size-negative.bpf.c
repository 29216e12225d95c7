/* A length with a sign is compared with its upper bound only. */
#include "explain.h"

struct name {
	s64 length;
	u64 address;
	u8 text[64];
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct name);
} names SEC(".maps");

SEC("kprobe/do_nanosleep")
int size_negative(void *ctx)
{
	u32 zero = 0;
	struct name *name = map_lookup_elem(&names, &zero);
	s64 length;

	if (!name)
		return 0;
	length = name->length;
	if (length > 64)
		return 0;
	probe_read_kernel(name->text, length, (void *)name->address);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
