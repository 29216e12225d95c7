/* What a page tells apart: integers above 2^53, variables of one name, and bytes of a packet that begins elsewhere. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

enum { ABORTED, DROP, PASS };

struct xdp_md {
	u32 data;
	u32 data_end;
};

static long (*const xdp_adjust_head)(void *ctx, int delta) = (void *)44;

char LICENSE[] SEC("license") = "GPL";

u64 large, half;
long long low;

static inline __attribute__((always_inline)) u32 twice(u32 number)
{
	volatile u32 value = number * 2;

	value += 1;
	return value;
}

SEC("xdp")
int page(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	volatile u32 value = 100;

	if (data + 20 > end)
		return DROP;
	large = 0xffffffffffffffffULL;
	half = 9007199254740993ULL;
	low = -9007199254740993LL;
	data[0] = 0xee;
	value += twice(data[1]);
	value += twice(data[2]);
	if (xdp_adjust_head(ctx, -4))
		return ABORTED;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + 20 > end)
		return DROP;
	data[0] = 0xaa;
	return value > 3 ? PASS : DROP;
}
