/*
 * Programs with many outputs, beside struct_ops, one of which no kernel has.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c outputs.bpf.c && llvm-strip-19 -g outputs.bpf.o
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name

struct xdp_md {
	u32 data, data_end;
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_trace_printk)(const char *format, u32 size, ...) = (void *)6;
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

struct rule {
	u8 address[4];
	u32 limit;
	union {
		u32 low;
		u8 parts[4];
	};
};

struct {
	__uint(type, 1);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct rule);
} rules SEC(".maps");

struct {
	__uint(type, 27);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("xdp") int look(struct xdp_md *ctx)
{
	u32 key = 1;

	return bpf_map_lookup_elem(&rules, &key) ? 2 : 1;
}

/* Prints 300 texts for each packet. */
SEC("xdp") int print(struct xdp_md *ctx)
{
	static const char text[] = "%d";

	for (int at = 0; at < 300; at++)
		bpf_trace_printk(text, sizeof(text), at);
	return 2;
}

/* Hands over a record of no known type. */
SEC("xdp") int record(struct xdp_md *ctx)
{
	char bytes[20] = "twenty bytes of text";

	bpf_ringbuf_output(&events, bytes, sizeof(bytes), 0);
	return 2;
}

struct tcp_congestion_ops {
	u32 (*ssthresh)(void *socket);
	u32 (*undo_cwnd)(void *socket);
	void (*cong_avoid)(void *socket, u32 ack, u32 acked);
	char name[16];
};

struct no_such_ops {
	int (*function)(void *argument);
};

SEC("struct_ops") u32 ssthresh(u64 *ctx)
{
	return 2;
}

SEC("struct_ops") u32 undo(u64 *ctx)
{
	return 2;
}

SEC("struct_ops") void avoid(u64 *ctx)
{
}

SEC("struct_ops") int function(u64 *ctx)
{
	return 0;
}

SEC(".struct_ops") struct tcp_congestion_ops control = {
	.ssthresh = (void *)ssthresh,
	.undo_cwnd = (void *)undo,
	.cong_avoid = (void *)avoid,
	.name = "beside",
};

SEC(".struct_ops") struct no_such_ops unknown = {
	.function = (void *)function,
};

char _license[] SEC("license") = "GPL";
