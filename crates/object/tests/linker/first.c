/* Uses what the other two define. */
#include "shared.h"

/* Defined in second.c. */
extern u32 limit;
extern const volatile u64 mask;
extern int add_pair(struct pair *pair);
/* A map of second.c, said here in full. */
extern struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct counter);
} counters FROM(".maps");

/* Nobody here defines these: the kernel and the loader do. */
extern u32 LINUX_KERNEL_VERSION FROM(".kconfig");
extern const void kernel_symbol FROM(".ksyms") __weak;
extern int kernel_function(struct pair *pair) FROM(".ksyms") __weak;

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} totals SEC(".maps");

/* The same names are static in second.c. */
static volatile u32 hits;
static volatile u32 start = 7;

static __noinline int step(u32 by)
{
	hits += by;
	return hits + start;
}

/* second.c has a strong one. */
__weak int pick(void)
{
	return 1;
}

/* third.c has a weak one too; the first stays. */
__weak int choose(u32 value)
{
	return value ? 10 : 11;
}

int seen = 3;

SEC("raw_tp/first")
int first(void *ctx)
{
	struct pair pair = { step(1), limit };
	u32 key = pair.left & mask;
	struct counter *counter = map_lookup(&counters, &key);
	u64 *total = map_lookup(&totals, &key);

	if (counter)
		counter->packets += LINUX_KERNEL_VERSION;
	if (total)
		*total += pick();
	if (&kernel_symbol)
		seen++;
	if (kernel_function)
		seen += kernel_function(&pair);
	return add_pair(&pair) + choose(key);
}

/* Said in both: it must be the same. */
char terms[] SEC("license") = "GPL";
