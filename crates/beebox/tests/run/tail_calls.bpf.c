/*
 * Programs that tail-call each other in the ways that matter, by one program array which the
 * test fills: chains, the limit, empty slots, computed indices, subprograms, trees. Each leaves
 * what ran in `trace`.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c tail_calls.bpf.c && llvm-strip-19 -g tail_calls.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __noinline __attribute__((noinline))
#define __uint(name, value) int (*name)[value]

enum { MAP_TYPE_ARRAY = 2, MAP_TYPE_PROG_ARRAY = 3, SLOTS = 8 };

struct __sk_buff {
	u32 len, pkt_type, mark;
};

struct {
	__uint(type, MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SLOTS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} programs SEC(".maps");

/* What ran, and an index that the verifier does not know; the test sets it. */
u64 trace;
u64 entered;
u32 chosen;

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} numbers SEC(".maps");

static void (*const tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
static long (*const for_each_map_elem)(void *map, void *callback, void *ctx, u64 flags) = (void *)164;
static long (*const loop)(u32 rounds, void *callback, void *ctx, u64 flags) = (void *)181;

static __attribute__((always_inline)) void note(u32 what)
{
	trace = trace * 31 + what;
	entered++;
}

/* Constant indices, one after the other: the first that is not empty goes on. */
SEC("tc")
int constant(struct __sk_buff *skb)
{
	note(1);
	tail_call(skb, &programs, 0);
	tail_call(skb, &programs, 1);
	tail_call(skb, &programs, 2);
	return 3;
}

/* Goes on with itself, if it is in slot 0. */
SEC("tc")
int again(struct __sk_buff *skb)
{
	note(2);
	tail_call(skb, &programs, 0);
	return 1;
}

/* An index from a variable, in and beyond the array. */
SEC("tc")
int computed(struct __sk_buff *skb)
{
	note(3);
	tail_call(skb, &programs, chosen);
	return 17;
}

/* One call site with two indices. */
SEC("tc")
int either(struct __sk_buff *skb)
{
	note(4);
	tail_call(skb, &programs, skb->len & 1 ? 3 : 4);
	return 19;
}

/* Ends a chain. */
SEC("tc")
int last(struct __sk_buff *skb)
{
	note(5);
	return skb->len + 2;
}

/* The compiler must not take a function's own result for what it returns: the target of its
 * tail call may return something else. */

/* Keeps registers and stack over a call of a function that goes on elsewhere. */
static __noinline int from_subprogram(struct __sk_buff *skb)
{
	volatile u32 on_stack = skb->len;

	note(6);
	tail_call(skb, &programs, 1);
	return on_stack * 2;
}

SEC("tc")
int caller(struct __sk_buff *skb)
{
	volatile u64 kept[4] = { 11, 22, 33, 44 };
	u32 len = skb->len, before = entered, result;

	note(7);
	result = from_subprogram(skb);
	note(8);
	return result + len + before + kept[0] + kept[3];
}

/* Two levels of functions, the deeper one of which goes on elsewhere. */
static __noinline int deeper(struct __sk_buff *skb)
{
	volatile int own = 5;

	note(9);
	tail_call(skb, &programs, chosen);
	return own;
}

static __noinline int deep(struct __sk_buff *skb)
{
	int result;

	note(10);
	result = deeper(skb);
	note(11);
	return result + 100;
}

SEC("tc")
int nested(struct __sk_buff *skb)
{
	int result;

	note(12);
	result = deep(skb);
	note(13);
	return result + 1000;
}

/* Functions that go on elsewhere again and again, and programs that do so after they call. */
static __noinline int branch(struct __sk_buff *skb)
{
	volatile int own = 1;

	note(14);
	tail_call(skb, &programs, 0);
	return own;
}

SEC("tc")
int tree(struct __sk_buff *skb)
{
	note(15);
	branch(skb);
	note(16);
	branch(skb);
	note(17);
	tail_call(skb, &programs, 1);
	return 2;
}

/* Calls the same function in the two slots that the tree uses. */
SEC("tc")
int leaf(struct __sk_buff *skb)
{
	note(18);
	branch(skb);
	note(19);
	return 3;
}

/* A global function. */
__noinline int global(struct __sk_buff *skb)
{
	volatile int own = 6;

	note(20);
	tail_call(skb, &programs, 5);
	return own;
}

SEC("tc")
int calls_global(struct __sk_buff *skb)
{
	int result;

	note(21);
	result = global(skb);
	note(22);
	return result * 2;
}

/* What callbacks work on. */
struct state {
	struct __sk_buff *skb;
	u32 sum;
};

static __noinline int below_callback(struct __sk_buff *skb)
{
	volatile int own = 5;

	note(23);
	tail_call(skb, &programs, 6);
	return own;
}

static long with_each_number(u32 number, struct state *state)
{
	state->sum = state->sum * 7 + below_callback(state->skb);
	note(number);
	return state->sum == 36;
}

/* The verifier writes the loop out, so that the count of tail calls reaches the callback. */
SEC("tc")
int loops(struct __sk_buff *skb)
{
	struct state state = { .skb = skb };

	note(24);
	loop(5, with_each_number, &state, 0);
	note(25);
	tail_call(skb, &programs, 1);
	return state.sum & 0xffff;
}

static long with_each_element(void *map, u32 *key, u32 *value, struct state *state)
{
	state->sum = state->sum * 7 + below_callback(state->skb) + *value;
	return 0;
}

/* A helper calls the callback. The kernel passes no count then: not to be run there. */
SEC("tc")
int each(struct __sk_buff *skb)
{
	struct state state = { .skb = skb };

	note(26);
	for_each_map_elem(&numbers, with_each_element, &state, 0);
	return state.sum & 0xffff;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
