/* Types that stand for a kernel's: as core.c has them. */
#include "program.h"

enum colour { RED = 1, GREEN = 2, BLUE = 3 };

struct inner {
	int x;
	int y;
};

struct thing {
	u32 id;
	struct inner at[3];
	u64 big;
	unsigned int low : 3;
	unsigned int high : 9;
	void *pointer;
	int gone;
};

typedef void (*btf_trace_thing)(void *data, struct thing *thing);

struct thing thing;
enum colour colour;
btf_trace_thing trace;

int kernel_function(struct thing *thing)
{
	return thing->id;
}

int bpf_lsm_hook(struct thing *thing)
{
	return thing->gone;
}
