/* What the files agree on. */
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

typedef unsigned int u32;
typedef unsigned long long u64;

struct counter {
	u64 packets;
	u64 bytes;
};

enum { ARRAY = 2, XDP_PASS = 2 };
