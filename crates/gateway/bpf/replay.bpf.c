/*
 * The gateway at XDP on frames of a map, one after the other in the order of another map: each
 * run copies the next frame over the packet. A test run of many repetitions then has the
 * traffic of many flows, in every engine alike.
 *
 * Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c replay.bpf.c && llvm-strip-19 -g replay.bpf.o
 */
#include "gateway.bpf.c"

enum { FRAME_BYTES = 64, FRAMES = 16384, ORDER = 16384 };

struct frame {
	u64 words[FRAME_BYTES / 8];
};

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, FRAMES);
	__type(key, u32);
	__type(value, struct frame);
} frames SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, ORDER);
	__type(key, u32);
	__type(value, u32);
} order SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} position SEC(".maps");

SEC("xdp")
int replay(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 zero = 0, index, *at, *number;
	struct frame *frame;

	at = map_lookup_elem(&position, &zero);
	if (!at || start + FRAME_BYTES > end)
		return XDP_DROP;
	index = (*at)++ & (ORDER - 1);
	number = map_lookup_elem(&order, &index);
	if (!number)
		return XDP_DROP;
	index = *number;
	frame = map_lookup_elem(&frames, &index);
	if (!frame)
		return XDP_DROP;
	*(struct frame *)start = *frame;
	return at_xdp(ctx);
}
