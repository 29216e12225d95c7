/* What tc and ip take: `struct bpf_elf_map`, with an id by which sections name the program array
 * that holds their program and outer maps their inner ones. */
#include "../objects/program.h"

struct bpf_elf_map {
	u32 type, size_key, size_value, max_elem, flags, id, pinning, inner_id, inner_idx;
};

/* Programs that the classifier jumps to. */
struct bpf_elf_map SEC("maps") jumps = { .type = 3, .size_key = 4, .size_value = 4, .max_elem = 8, .id = 2 };
/* Shared by all objects: /sys/fs/bpf/tc/globals. */
struct bpf_elf_map SEC("maps") shared = { .type = 1, .size_key = 4, .size_value = 8, .max_elem = 16, .pinning = 2 };
/* The map at index 1 of the next one. */
struct bpf_elf_map SEC("maps") inner = { .type = 2, .size_key = 4, .size_value = 8, .max_elem = 1, .id = 7, .inner_idx = 1 };
struct bpf_elf_map SEC("maps") outer = { .type = 12, .size_key = 4, .size_value = 4, .max_elem = 3, .inner_id = 7 };

static void (*const tail_call)(void *ctx, void *map, u32 index) = (void *)12;

static NOINLINE int is_known(u32 key)
{
	return map_lookup(&shared, &key) != 0;
}

SEC("classifier")
int classify(void *ctx)
{
	u32 key = 1;
	void *held = map_lookup(&outer, &key);

	if (held)
		tail_call(ctx, &jumps, 1);
	tail_call(ctx, &jumps, 0);
	return is_known(2);
}

SEC("2/0")
int first(void *ctx)
{
	return 2;
}

SEC("2/0x1")
int second(void *ctx)
{
	return is_known(1);
}

SEC("action/mark")
int mark(void *ctx)
{
	return 0;
}

SEC("prog")
int frames(void *ctx)
{
	return 2;
}
