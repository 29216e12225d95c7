/* W6a: small functions that call one another, five levels deep, as a program
 * that was written in many pieces does. */
#include "workload.h"

#define VALUES 16

called u64 step(u64 state, u64 value)
{
	return (state ^ value) * 0x100000001b3 + 7;
}

called u64 clamp(u64 value, u64 least, u64 most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

called u64 mix(u64 state, u64 left, u64 right)
{
	state = step(state, left);
	return step(state, right) ^ clamp(left, right >> 8, 1000000);
}

called u64 pair(u64 state, const u64 *values, u32 at)
{
	u64 left = values[at & (VALUES - 1)];
	u64 right = values[(at + 1) & (VALUES - 1)];

	return mix(state, left, right) + mix(state >> 3, right, left);
}

called u64 row(u64 state, const u64 *values)
{
	for (u32 i = 0; i < VALUES; i += 2)
		state = pair(state, values, i);
	return state;
}

called u64 all(const u64 *values)
{
	u64 state = 0xcbf29ce484222325;

	for (u32 turn = 0; turn < 4; turn++)
		state += row(state, values);
	return state;
}

u32 entry(struct context *context)
{
	const u8 *data = data_of(context), *end = end_of(context);

	if (data + 8 * VALUES > end)
		return 0;
	return fold(all((const u64 *)data));
}
