/*
 * Programs that call functions of their host with every kind of argument, and some that the
 * verifier refuses.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c host.bpf.c && llvm-strip-19 -g host.bpf.o
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))

struct xdp_md {
	u32 data, data_end, data_meta;
	u32 ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct Entry {
	u64 hits;
	u32 limit;
	u8 name[4];
};

extern long long host_sum(const void *bytes, u32 bytes__sz, unsigned short scale) __ksym;
extern int host_find(u32 key, struct Entry *found, const struct Entry *pattern) __ksym;
extern void host_fill(void *bytes, u32 bytes__sz, u8 value) __ksym;
extern u32 host_length(const char *text__str) __ksym;
extern _Bool host_flip(_Bool value, u64 *count, int by) __ksym;
extern u64 host_missing(u64 value) __weak __ksym;

/* The same functions as helpers, by numbers. */
static long long (*const sum)(const void *, u32, unsigned short) = (void *)65536;
static int (*const find)(u32, struct Entry *, const struct Entry *) = (void *)65537;
static void (*const fill)(void *, u32, u8) = (void *)65538;
static u32 (*const length)(const char *) = (void *)65539;
static _Bool (*const flip)(_Bool, u64 *, int) = (void *)0x6fffffff;

const volatile char word[] = "beebox";

/* A program that writes into the packet what each function returns and changes. */
#define CALL_ALL(program, sum, find, fill, length, flip)				\
SEC("xdp")									\
int program(struct xdp_md *ctx)						\
{										\
	u8 *data = (void *)(long)ctx->data;					\
	u8 *end = (void *)(long)ctx->data_end;					\
	struct Entry entry = { 1, 2, { 3, 4, 5, 6 } };				\
	struct Entry pattern = { 7, 8, { 9, 10, 11, 12 } };			\
	u64 count = 40;								\
	u64 *out;								\
										\
	if (data + 64 > end)							\
		return 1;							\
	out = (u64 *)data;							\
	out[0] = sum(data + 16, 48, 3);						\
	out[1] = (u32)find(data[16], &entry, &pattern);				\
	out[2] = entry.hits;							\
	out[3] = entry.limit | (u64)*(u32 *)entry.name << 32;			\
	fill(data + 32, 8, 0x5a);						\
	out[5] = length((const char *)word);					\
	out[6] = flip(data[16] & 1, &count, -7);				\
	out[7] = count;								\
	return 2;								\
}

CALL_ALL(all, host_sum, host_find, host_fill, host_length, host_flip)
CALL_ALL(helpers, sum, find, fill, length, flip)

/* Memory behind the packet's bounds, for a helper. */
SEC("xdp")
int unbounded_helper(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data;
	u8 *end = (void *)(long)ctx->data_end;

	if (data + 14 > end)
		return 1;
	return sum(data, 15, 3);
}

/* Read-only memory, for a helper that writes. */
SEC("xdp")
int read_only(struct xdp_md *ctx)
{
	fill((void *)word, 4, 0);
	return 0;
}

/* A helper that no host has. */
SEC("xdp")
int no_helper(struct xdp_md *ctx)
{
	u64 (*const missing)(u64) = (void *)65999;

	return missing(1);
}

/* A function that no host has: the branch is dead. */
SEC("xdp")
int optional(struct xdp_md *ctx)
{
	return host_missing ? host_missing(1) : 3;
}

/* Memory behind the packet's bounds. */
SEC("xdp")
int unbounded(struct xdp_md *ctx)
{
	u8 *data = (void *)(long)ctx->data;
	u8 *end = (void *)(long)ctx->data_end;

	if (data + 14 > end)
		return 1;
	return host_sum(data, 15, 3);
}

/* A pointer that is no constant string. */
SEC("xdp")
int text(struct xdp_md *ctx)
{
	char own[8] = "own";

	return host_length(own);
}

char _license[] SEC("license") = "GPL";
