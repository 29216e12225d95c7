/*
 * Two programs that share an object: an XDP program that counts packets by
 * protocol and reports each packet for a port, and a tracing program that counts
 * programs started by children of one process.
 *
 * Needs no header. Build:
 *   clang -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c traffic.bpf.c && llvm-strip -g traffic.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_PERCPU_HASH = 5, MAP_TYPE_RINGBUF = 27 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;

/* What the kernel has; the offsets come from its types when this is linked. */
struct task_struct {
	int tgid;
	struct task_struct *real_parent;
} __attribute__((preserve_access_index));

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct tally {
	u64 packets;
	u64 bytes;
};

struct event {
	u64 time;
	u32 bytes;
};

struct {
	__uint(type, MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, u8);
	__type(value, struct tally);
} tallies SEC(".maps");

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* The port to report, in network byte order; whoever loads the object sets it. */
const volatile u16 reported_port = 0x1600;
/* The process whose children are counted. */
const volatile int watched = 1;

u64 lost;
u64 started;

/* The protocol of an IPv4 packet, 0 if it is none; *port gets where it goes. */
static __attribute__((noinline)) u8 protocol(struct xdp_md *ctx, u16 *port)
{
	u8 *data = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end;

	if (data + 14 + 20 + 4 > end || *(u16 *)(data + 12) != 0x0008)
		return 0;
	/* Options move the ports; packets with options are only counted. */
	if (data[14] == 0x45 && (data[23] == 6 || data[23] == 17))
		*port = *(u16 *)(data + 14 + 20 + 2);
	return data[23];
}

static void report(u32 bytes)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	event->time = ktime_get_ns();
	event->bytes = bytes;
	ringbuf_submit(event, 0);
}

SEC("xdp")
int count(struct xdp_md *ctx)
{
	u32 bytes = ctx->data_end - ctx->data;
	struct tally *tally, first = { 1, bytes };
	u16 port = 0;
	u8 key = protocol(ctx, &port);

	tally = map_lookup_elem(&tallies, &key);
	if (tally) {
		tally->packets++;
		tally->bytes += bytes;
	} else {
		map_update_elem(&tallies, &key, &first, 0);
	}
	if (port == reported_port)
		report(bytes);
	return 2; /* XDP_PASS */
}

SEC("tp_btf/sched_process_exec")
int exec(u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];

	if (task->real_parent->tgid == watched)
		__sync_fetch_and_add(&started, 1);
	return 0;
}

char terms[] SEC("license") = "Dual MIT/GPL";
