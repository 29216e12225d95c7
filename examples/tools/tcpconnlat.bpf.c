/* How long connections take: from the begin of connect to the answer of the other side. */
#include "tools.h"

struct event {
	u64 nanoseconds;
	u32 daddr;
	u16 dport;
	s32 pid;
};

struct start {
	u64 time;
	u64 pid;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct start);
} starts SEC(".maps");

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} events SEC(".maps");

struct event *unused_event;

SEC("kprobe/tcp_v4_connect")
int on_connect(struct pt_regs *ctx)
{
	u64 sk = ctx->di;
	struct start start = {
		.time = ktime_get_ns(),
		.pid = get_current_pid_tgid() >> 32,
	};

	map_update_elem(&starts, &sk, &start, 0);
	return 0;
}

SEC("fentry/tcp_rcv_state_process")
int on_answer(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u64 key = (u64)sk;
	struct start *start;
	struct event *event;

	if (sk->__sk_common.skc_state != TCP_SYN_SENT)
		return 0;
	start = map_lookup_elem(&starts, &key);
	if (!start)
		return 0;
	event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		event->nanoseconds = ktime_get_ns() - start->time;
		event->daddr = sk->__sk_common.skc_daddr;
		event->dport = __builtin_bswap16(sk->__sk_common.skc_dport);
		event->pid = start->pid;
		ringbuf_submit(event, 0);
	}
	map_delete_elem(&starts, &key);
	return 0;
}
