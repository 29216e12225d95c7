/* Operations that pointers do not have. */
#include "edits.h"

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[8]);
} table SEC(".maps");

/* The value of the map, as the compiler cannot take apart */
#define VALUE(p, n)                                                                                \
	u32 zero = 0;                                                                              \
	u64 *p = map_lookup_elem(&table, &zero);                                                   \
                                                                                                   \
	if (!p)                                                                                    \
		return 0;                                                                          \
	u64 n = ktime_get_ns();                                                                    \
	u64 bits = CHOOSE((u64)p, *p);                                                             \
	asm volatile("" : "+r"(bits));

SEC("xdp")
int masked(struct xdp_md *ctx)
{
	VALUE(p, n)
	return (bits & n) == 7; /* refused masked: pointer-arithmetic | an operation that pointers do not have | read them through it | `bpf_map_lookup_elem` returns it */
}

SEC("xdp")
int combined(struct xdp_md *ctx)
{
	VALUE(p, n)
	return (bits | 0x2f7665642f) == n; /* refused combined: pointer-arithmetic | an operation that pointers do not have */
}

SEC("xdp")
int flipped(struct xdp_md *ctx)
{
	VALUE(p, n)
	return (bits ^ n) == 7; /* refused flipped: pointer-arithmetic | an operation that pointers do not have */
}

SEC("xdp")
int hashed(struct xdp_md *ctx)
{
	VALUE(p, n)
	return bits * 0x9e3779b97f4a7c15 == n; /* refused hashed: pointer-arithmetic | an operation that pointers do not have */
}

SEC("xdp")
int divided(struct xdp_md *ctx)
{
	VALUE(p, n)
	return bits / n == 7; /* refused divided: pointer-arithmetic | an operation that pointers do not have */
}

SEC("xdp")
int left_over(struct xdp_md *ctx)
{
	VALUE(p, n)
	return bits % 10000000019 == n; /* refused left_over: pointer-arithmetic | an operation that pointers do not have */
}

SEC("xdp")
int shifted(struct xdp_md *ctx)
{
	VALUE(p, n)
	return bits >> (n & 63) == 7; /* refused shifted: pointer-arithmetic | an operation that pointers do not have */
}

/* The number is on the left */
SEC("xdp")
int masked_by_pointer(struct xdp_md *ctx)
{
	VALUE(p, n)
	asm volatile("%0 &= %1" : "+r"(n) : "r"(bits)); /* refused masked_by_pointer: pointer-arithmetic | an operation that pointers do not have */
	return n == 7;
}

SEC("xdp")
int two_pointers(struct xdp_md *ctx)
{
	VALUE(p, n)
	u64 other = CHOOSE((u64)ctx, n);
	asm volatile("%0 ^= %1" : "+r"(bits) : "r"(other)); /* refused two_pointers: pointer-arithmetic | on two pointers */
	return bits == 7;
}

SEC("xdp")
int subtracted(struct xdp_md *ctx)
{
	VALUE(p, n)
	n = CHOOSE(n, n & 7);
	asm volatile("%0 -= %1" : "+r"(p) : "r"(n)); /* refused subtracted: offset-unbounded | a number without bounds is subtracted | `n &= N - 1;` */
	return CHOOSE(*p, 0);
}

/* Checked for null or not, the operation is none of pointers */
SEC("xdp")
int before_the_check(struct xdp_md *ctx)
{
	u32 zero = 0;
	u64 *p = map_lookup_elem(&table, &zero);
#ifdef EDIT
	if (!p)
		return 0;
#endif
	u64 bits = CHOOSE((u64)p, *p);
	asm volatile("%0 &= -8" : "+r"(bits)); /* refused before_the_check: pointer-arithmetic | an operation that pointers do not have */
	return bits == 7;
}

/* An aligned address */
SEC("xdp")
int aligned(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 *p = CHOOSE((void *)(((long)data + 15) & ~3L), data + ((15 + 3) & ~3L)); /* refused aligned: pointer-arithmetic | compute the offset as a number, then add it */

	if ((void *)(p + 1) > end)
		return XDP_PASS;
	return *p ? XDP_DROP : XDP_PASS;
}

/* The address of the pointer where the pointer is meant */
static always_inline int starts_with(const char *want, const char *text, int n)
{
	for (int i = 0; i < n; i++)
		if (want[i] != text[i]) /* refused compared: pointer-arithmetic | an address `&p` where `p` is meant | `bpf_map_lookup_elem` returns it */
			return 0;
	return 1;
}

SEC("xdp")
int compared(struct xdp_md *ctx)
{
	u32 zero = 0;
	char *name = map_lookup_elem(&table, &zero);

	if (!name)
		return XDP_PASS;
	return starts_with("/dev/", CHOOSE((char *)&name, name), 5) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
