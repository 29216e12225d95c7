/* Reads of a kernel's structures whose layout was not known, and is told by
 * kernel.c and moved.c. */
#include "program.h"

#define OF_KERNEL __attribute__((preserve_access_index))

enum colour { RED = 1, GREEN = 2, BLUE = 3 };

struct inner {
	int x;
	int y;
} OF_KERNEL;

struct thing {
	u32 id;
	struct inner at[3];
	u64 big;
	unsigned int low : 3;
	unsigned int high : 9;
	void *pointer;
	int gone;
} OF_KERNEL;

/* Another version of it: what follows three underscores is no part of the name. */
struct thing___old {
	u16 id;
	long added;
} OF_KERNEL;

struct nowhere {
	int x;
} OF_KERNEL;

#define OFFSET(expression) __builtin_preserve_field_info(expression, 0)
#define SIZE(expression) __builtin_preserve_field_info(expression, 1)
#define EXISTS(expression) __builtin_preserve_field_info(expression, 2)
#define LEFT(expression) __builtin_preserve_field_info(expression, 4)
#define RIGHT(expression) __builtin_preserve_field_info(expression, 5)

SEC("raw_tracepoint/thing")
int reads(struct thing **args)
{
	struct thing *thing = *args;

	thing->id = 1;
	return thing->id + thing->at[2].y + thing->big + (thing->pointer != 0);
}

SEC("raw_tracepoint/thing")
int asks(struct thing **args)
{
	struct thing *thing = *args;
	u64 sum = OFFSET(thing->at[1].x) + SIZE(thing->big);

	if (EXISTS(thing->gone))
		sum += thing->gone;
	sum += LEFT(thing->high) + RIGHT(thing->low);
	sum += __builtin_preserve_type_info(*(struct nowhere *)0, 0);
	sum += __builtin_preserve_type_info(*(struct thing *)0, 1);
	sum += __builtin_preserve_enum_value(*(typeof(enum colour) *)BLUE, 1);
	sum += __builtin_preserve_enum_value(*(typeof(enum colour) *)GREEN, 0);
	sum += __builtin_btf_type_id(*(struct thing *)0, 1);
	return sum;
}

SEC("raw_tracepoint/thing")
int missing(struct nowhere **args)
{
	return (*args)->x;
}

SEC("raw_tracepoint/thing")
int flavours(struct thing___old **args)
{
	return (*args)->id + (EXISTS((*args)->added) ? 1 : 0);
}
