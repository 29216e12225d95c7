/* Has nothing of its own but a function: what it uses is the others'. */
#include "shared.h"

extern u32 limit;
extern int seen __hidden;
extern struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct counter);
} counters FROM(".maps");

/* The same as in first.c, but the function is not weak here. */
extern u32 LINUX_KERNEL_VERSION FROM(".kconfig");
extern int kernel_function(struct pair *other_name) FROM(".ksyms");

/* Only the names of these structures are known here. */
struct unknown;
extern int choose(u32 value) __weak;

static const volatile u32 step = 5;

int use(u32 key, struct unknown *unknown)
{
	struct counter *counter = map_lookup(&counters, &key);

	if (!counter || !unknown)
		return LINUX_KERNEL_VERSION + limit;
	if (choose)
		key += choose(step);
	return kernel_function(&counter->sides) + seen + key;
}

u32 edition SEC("version") = 3;
