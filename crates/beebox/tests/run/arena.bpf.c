/*
 * A list and a table in an arena: nodes on pages that the programs allocate, global variables
 * at the pages that the loader fills.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c arena.bpf.c && llvm-strip-19 -g arena.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, number) int(*name)[number]
#define __ksym __attribute__((section(".ksyms")))
#define __arena __attribute__((address_space(1)))

#define PAGE 4096
#define NODES 1000

struct {
	__uint(type, 33);
	__uint(map_flags, 1024);
	__uint(max_entries, 64);
} arena SEC(".maps");

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *address, u32 pages, int node,
					   u64 flags) __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *address, u32 pages) __ksym;
extern int bpf_arena_reserve_pages(void *map, void __arena *address, u32 pages) __ksym;

struct node {
	struct node __arena *next;
	u64 value;
};

struct node __arena *__arena head;
struct node __arena *__arena room;
u64 __arena left;
u64 __arena count = 5;
u64 __arena buckets[16] = { 1, 2, 3 };

struct input {
	u64 value;
};

/* Puts a number in front of the list; returns how many numbers were put there. */
SEC("syscall") int push(struct input *input)
{
	struct node __arena *node;

	if (left == 0) {
		room = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);
		if (!room)
			return -1;
		left = PAGE / sizeof(struct node);
	}
	node = room;
	room = node + 1;
	left--;
	node->value = input->value;
	node->next = head;
	head = node;
	count++;
	__sync_fetch_and_add(&buckets[input->value & 15], 1);
	return count;
}

/* The sum of the list, of which freed pages hold nothing. */
SEC("syscall") int sum(struct input *input)
{
	struct node __arena *node = head;
	u64 sum = 0;

	for (u32 i = 0; i < NODES && node; i++) {
		sum = sum * 31 + node->value;
		node = node->next;
	}
	return sum;
}

/* Frees the page of the newest node, and reserves the next one. */
SEC("syscall") int drop(struct input *input)
{
	int reserved;

	bpf_arena_free_pages(&arena, head, 1);
	reserved = bpf_arena_reserve_pages(&arena, head, input->value);
	left = 0;
	return reserved;
}

char _license[] SEC("license") = "GPL";
