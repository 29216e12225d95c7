/* What the three files agree on. Written for these tests; no header of anybody's
 * is needed. */
#define SEC(name) __attribute__((section(name), used))
#define FROM(name) __attribute__((section(name)))
#define __weak __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))
#define __noinline __attribute__((noinline))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

typedef unsigned int u32;
typedef unsigned long long u64;

struct pair {
	u32 left;
	u32 right;
};

struct counter {
	u64 packets;
	struct pair sides;
};

/* Map kinds, by Linux's numbers. */
#define HASH 1
#define ARRAY 2
#define ARRAY_OF_MAPS 12

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
