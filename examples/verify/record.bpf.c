/*
 * Reports packets through a ring buffer. Refused: a path returns with the record.
 *
 * Needs no header. Build:
 *   clang -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c record.bpf.c && llvm-strip -g record.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]

static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;

enum { MAP_TYPE_RINGBUF = 27, PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
};

struct event {
	u32 device;
	u32 length;
};

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("xdp")
int record(struct xdp_md *ctx)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return PASS;
	event->length = ctx->data_end - ctx->data;
	if (event->length < 64)
		return PASS;
	event->device = ctx->ingress_ifindex;
	ringbuf_submit(event, 0);
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
