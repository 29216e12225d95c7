/* W9: a chain of 200 compares, as long lists of rules are: which rule matches
 * first, for 8 values. The compiler may not see that it is a list. */
#include "workload.h"

#define VALUES 8

#define rule(n)                                 \
	opaque(value);                          \
	if (value == (n) * 5 + ((n) & 3))       \
		return (n) + 1;
#define rules_10(n)                                                            \
	rule(n) rule((n) + 1) rule((n) + 2) rule((n) + 3) rule((n) + 4)        \
	rule((n) + 5) rule((n) + 6) rule((n) + 7) rule((n) + 8) rule((n) + 9)
#define rules_50(n)                                                            \
	rules_10(n) rules_10((n) + 10) rules_10((n) + 20) rules_10((n) + 30)   \
	rules_10((n) + 40)

inlined u32 first_match(u32 value)
{
	rules_50(0)
	rules_50(50)
	rules_50(100)
	rules_50(150)
	return 0;
}

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);
	u32 sum = 0;

	if (data + 4 * VALUES > end)
		return 0;
	for (u32 i = 0; i < VALUES; i++)
		sum = sum * 7 + first_match(((const u32 *)data)[i]);
	return sum;
}
