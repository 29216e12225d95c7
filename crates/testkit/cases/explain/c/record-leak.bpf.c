/* A record is reserved and left on an error path. */
#include "explain.h"

struct event {
	u64 time;
	u32 device;
	u32 length;
};

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("xdp")
int record_leak(struct xdp_md *ctx)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return XDP_PASS;
	event->time = ktime_get_ns();
	event->device = ctx->ingress_ifindex;
	if (event->device == 1)
		return XDP_PASS;
	event->length = ctx->data_end - ctx->data;
	ringbuf_submit(event, 0);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
