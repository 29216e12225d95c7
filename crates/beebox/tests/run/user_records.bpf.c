/*
 * A program that reads records which the host wrote, and programs that use dynptrs on its
 * own memory: the verifier here does not support them.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c user_records.bpf.c && llvm-strip-19 -g user_records.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]

enum { MAP_TYPE_USER_RINGBUF = 31 };

struct bpf_dynptr {
	u64 __opaque[2];
} __attribute__((aligned(8)));

struct xdp_md {
	u32 data, data_end;
};

static long (*const dynptr_read)(void *to, u32 len, const struct bpf_dynptr *from, u32 offset, u64 flags) = (void *)201;
static void *(*const dynptr_data)(const struct bpf_dynptr *from, u32 offset, u32 len) = (void *)203;
static long (*const user_ringbuf_drain)(void *map, void *callback, void *context, u64 flags) = (void *)209;

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
	__uint(type, MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

/* What the records hold, and how many of them were too short. */
u64 sum;
u64 lengths;
u64 too_short;

/* A record of the number 0 ends the reading. */
static long add(struct bpf_dynptr *record, void *context)
{
	u32 number;

	if (dynptr_read(&number, sizeof(number), record, 0, 0)) {
		too_short++;
		return 0;
	}
	sum = sum * 31 + number;
	if (dynptr_data(record, 8, 8))
		lengths++;
	return !number;
}

SEC("xdp")
int drain(struct xdp_md *ctx)
{
	return user_ringbuf_drain(&records, add, 0, 0);
}
