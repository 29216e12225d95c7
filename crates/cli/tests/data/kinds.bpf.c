/*
 * A program of every type that Linux test-runs, a perf buffer, and a program array that the
 * host fills.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c kinds.bpf.c && llvm-strip-19 -g kinds.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { PROG_ARRAY = 3, PERF_EVENT_ARRAY = 4, TASK_STORAGE = 29, NO_PREALLOC = 1 };

static long (*const bpf_tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*const bpf_perf_event_output)(void *ctx, void *map, u64 flags, void *data,
					   u64 size) = (void *)25;

struct event {
	u32 length;
	u32 number;
};

/* The type of the records of events. */
struct event *unused_event;
u32 events_written;

struct {
	__uint(type, PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} events SEC(".maps");

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__uint(value_size, 4);
} next SEC(".maps");

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index;
};

SEC("xdp")
int write_event(struct xdp_md *xdp)
{
	struct event event = {
		.length = xdp->data_end - xdp->data,
		.number = ++events_written,
	};

	bpf_perf_event_output(xdp, &events, 0xffffffffULL, &event, sizeof(event));
	return 2;
}

SEC("xdp")
int jump(struct xdp_md *xdp)
{
	bpf_tail_call(xdp, &next, 1);
	return 2;
}

SEC("xdp")
int drop(struct xdp_md *xdp)
{
	return 1;
}

struct sums {
	u32 a, b;
	u64 sum;
};

SEC("syscall")
int add(struct sums *ctx)
{
	ctx->sum = (u64)ctx->a + ctx->b;
	return ctx->a;
}

SEC("raw_tp/sched_switch")
int second_argument(u64 *ctx)
{
	return ctx[1];
}

struct task_struct;

static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
					   u64 flags) = (void *)156;

struct {
	__uint(type, TASK_STORAGE);
	__uint(map_flags, NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} runs SEC(".maps");

SEC("raw_tp/sched_wakeup")
int count_runs(u64 *ctx)
{
	u64 *count = bpf_task_storage_get(&runs, bpf_get_current_task_btf(), 0, 1);

	return count ? ++*count : 0;
}

struct bpf_sk_lookup {
	u64 cookie;
	u32 family, protocol, remote_ip4, remote_ip6[4];
	u32 remote_port, local_ip4, local_ip6[4], local_port, ingress_ifindex;
};

SEC("sk_lookup")
int port_80(struct bpf_sk_lookup *ctx)
{
	return ctx->local_port == 80;
}

SEC("flow_dissector")
int dissect(void *ctx)
{
	return 0;
}

SEC("netfilter")
int accept(void *ctx)
{
	return 1;
}

struct __sk_buff {
	u32 len, pkt_type, mark;
};

SEC("lwt_in")
int tunnel_in(struct __sk_buff *skb)
{
	return 0;
}

SEC("lwt_out")
int tunnel_out(struct __sk_buff *skb)
{
	return 2;
}

SEC("lwt_xmit")
int tunnel_xmit(struct __sk_buff *skb)
{
	return 128;
}

SEC("tc")
int marked(struct __sk_buff *skb)
{
	skb->mark += 1;
	return skb->mark > 5 ? 2 : 0;
}

SEC("action")
int act(struct __sk_buff *skb)
{
	return 0;
}

SEC("socket")
int keep(struct __sk_buff *skb)
{
	return skb->len;
}

SEC("cgroup_skb/ingress")
int pass(struct __sk_buff *skb)
{
	return 1;
}

const char LICENSE[] SEC("license") = "GPL";
