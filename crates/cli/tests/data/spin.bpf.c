/*
 * A program that runs ten million instructions, which the debugger goes back in: an iteration of a loop
 * writes a value that is asked for at the end.
 *
 * Needs no header. Keeps its debug information. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c spin.bpf.c
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_ARRAY = 2 };
enum { ITERATIONS = 1200000 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

u64 total;

struct state {
	u64 sum;
	u64 first;
};

static long step(u64 index, struct state *state)
{
	if (index == 1000)
		state->first = index;
	state->sum += index & 7;
	state->sum ^= index;
	return 0;
}

SEC("xdp")
int spin(void *ctx)
{
	struct state state = { 0 };
	u32 key = 1;
	u64 *count = map_lookup_elem(&counts, &key);

	if (count)
		*count += 1;
	loop(ITERATIONS, step, &state, 0);
	total = state.sum + state.first;
	return 2;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
