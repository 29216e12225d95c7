/* The states of TCP connections, and how long each lasted. */
#include "tools.h"

struct event {
	u64 nanoseconds;
	u8 daddr[4];
	u16 dport;
	u8 oldstate;
	u8 newstate;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} since SEC(".maps");

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} events SEC(".maps");

struct event *unused_event;

SEC("tp/sock/inet_sock_set_state")
int on_state(struct trace_event_raw_inet_sock_set_state *ctx)
{
	u64 sk = (u64)ctx->skaddr, now = ktime_get_ns();
	u64 *before = map_lookup_elem(&since, &sk);
	struct event *event;

	if (ctx->family != AF_INET)
		return 0;
	event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		event->nanoseconds = before ? now - *before : 0;
		__builtin_memcpy(event->daddr, ctx->daddr, sizeof(event->daddr));
		event->dport = ctx->dport;
		event->oldstate = ctx->oldstate;
		event->newstate = ctx->newstate;
		ringbuf_submit(event, 0);
	}
	map_update_elem(&since, &sk, &now, 0);
	return 0;
}
