/* Which files processes open, and with what result. */
#include "tools.h"

struct event {
	s32 pid;
	s32 result;
	char comm[16];
	char filename[64];
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} names SEC(".maps");

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} events SEC(".maps");

struct event *unused_event;

SEC("kprobe/do_sys_openat2")
int on_open(struct pt_regs *ctx)
{
	u64 thread = get_current_pid_tgid(), name = ctx->si;

	map_update_elem(&names, &thread, &name, 0);
	return 0;
}

SEC("kretprobe/do_sys_openat2")
int on_opened(struct pt_regs *ctx)
{
	u64 thread = get_current_pid_tgid();
	u64 *name = map_lookup_elem(&names, &thread);
	struct event *event;

	if (!name)
		return 0;
	event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		event->pid = thread >> 32;
		event->result = ctx->ax;
		get_current_comm(event->comm, sizeof(event->comm));
		probe_read_user_str(event->filename, sizeof(event->filename), (void *)*name);
		ringbuf_submit(event, 0);
	}
	map_delete_elem(&names, &thread);
	return 0;
}
