/*
 * XDP programs that report what their run is given: time, CPU, interface, random number.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c report.bpf.c && llvm-strip-19 -g report.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index;
};

static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_trace_printk)(const char *format, u32 size, ...) = (void *)6;
static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;

#define print(format, ...)                                              \
	({                                                              \
		static const char text[] = format;                      \
		bpf_trace_printk(text, sizeof(text), ##__VA_ARGS__);    \
	})

u64 packets;
u32 limit = 3;

struct last {
	u64 time;
	u32 cpu;
	u32 ifindex;
	u32 random;
	u32 length;
};

struct last last;

SEC("xdp")
int report(struct xdp_md *xdp)
{
	u64 number = ++packets;

	last.time = bpf_ktime_get_ns();
	last.cpu = bpf_get_smp_processor_id();
	last.ifindex = xdp->ingress_ifindex;
	last.random = bpf_get_prandom_u32();
	last.length = xdp->data_end - xdp->data;
	if (number <= limit)
		print("packet %llu of %u bytes at %llu\n", number, last.length, last.time);
	return number <= limit ? 2 : 1;
}

SEC("xdp")
int by_name(struct xdp_md *xdp)
{
	static const char name[] = "by name";

	print("called %s", name);
	return 2;
}

char LICENSE[] SEC("license") = "GPL";
